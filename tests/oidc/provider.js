// A provider for tests: node provider.js PORT KEYS, where KEYS is a JSON Web Key Set with private keys.
// A client that takes client credentials is in the group of its name; people, in `data-science`.
import { Provider } from "oidc-provider";

const [port, keys] = process.argv.slice(2);
const MACHINES = ["data-science", "operations", "viewers", "strangers"];

const machine = (name) => ({
  client_id: name,
  client_secret: "a-secret-of-the-tests",
  grant_types: ["client_credentials"],
  response_types: [],
  redirect_uris: [],
});
const dashboard = {
  client_id: "dashboard",
  token_endpoint_auth_method: "none",
  application_type: "native",
  redirect_uris: ["http://127.0.0.1/ui/sign-in/callback"],
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [dashboard, ...MACHINES.map(machine)],
  jwks: JSON.parse(keys),
  cookies: { keys: ["tests"] },
  conformIdTokenClaims: false,
  claims: { openid: ["sub", "groups"], profile: [], email: [] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: id === "stranger" ? [] : ["data-science"] }),
  }),
  extraTokenClaims: (_, token) => ({ groups: [token.clientId] }),
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: "",
        audience: resource.replace("urn:", ""),
        accessTokenFormat: "jwt",
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
