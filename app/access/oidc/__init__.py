"""Sign-on with an OpenID Connect provider, beside keys: off until CREDENCE_OIDC_ISSUER is set."""
