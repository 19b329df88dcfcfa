// Rules for the dashboard's scripts.
import js from "@eslint/js";

export default [
  { ignores: ["**/vendor/"] },
  js.configs.recommended,
  {
    files: ["**/*.js"],
    rules: {
      "no-undef": "off", // the type checker knows the browser's globals
      eqeqeq: "error",
      "no-shadow-restricted-names": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
];
