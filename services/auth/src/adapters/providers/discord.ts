import { joinName, type OAuth2Provider, onlyEmail, type ProviderJson, pictured } from '../oauth/provider.ts'

/** https://discord.com/developers/docs/topics/oauth2 */
export const discord: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://discord.com') => ({
    authorize: `${base}/api/oauth2/authorize`,
    token: `${base}/api/oauth2/token`,
    api: `${base}/api`,
  }),
  scopes: ['email', 'identify'],
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/users/@me`)
    const avatar = avatarOf(user)
    return {
      sub: user.id,
      emails: onlyEmail(user.email, user.verified === true),
      claims: {
        iss: api,
        name: joinName([user.username, user.discriminator], '#'),
        full_name: user.username,
        ...pictured(avatar),
        custom_claims: { global_name: user.global_name },
      },
    }
  },
}

/** https://discord.com/developers/docs/reference#image-formatting */
function avatarOf({ id, avatar, discriminator }: ProviderJson): string {
  const cdn = 'https://cdn.discordapp.com'
  if (!avatar) return `${cdn}/embed/avatars/${(Number(discriminator) || 0) % 5}.png`
  return `${cdn}/avatars/${id}/${avatar}.${String(avatar).startsWith('a_') ? 'gif' : 'png'}`
}
