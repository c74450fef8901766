import { named, type OAuth1Provider, onlyEmail, pictured } from '../oauth/provider.ts'

/** https://docs.x.com/fundamentals/authentication/oauth-1-0a/obtaining-user-access-tokens */
export const twitter: OAuth1Provider = {
  protocol: 'oauth1',
  endpoints: (base = 'https://api.twitter.com') => ({
    requestToken: `${base}/oauth/request_token`,
    authorize: `${base}/oauth/authenticate`,
    accessToken: `${base}/oauth/access_token`,
    profile: `${base}/1.1/account/verify_credentials.json?include_entities=false&skip_status=true&include_email=true`,
    issuer: base,
  }),
  identify: (user, { issuer }) => ({
    // `id` exceeds the exact range of JSON numbers.
    sub: user.id_str,
    emails: onlyEmail(user.email, true),
    claims: {
      iss: issuer,
      ...named(user.name),
      preferred_username: user.screen_name,
      user_name: user.screen_name,
      ...pictured(user.profile_image_url_https),
    },
  }),
}
