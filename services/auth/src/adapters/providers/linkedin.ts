import { joinName, named, type OAuth2Provider, onlyEmail, type ProviderJson, pictured } from '../oauth/provider.ts'

const PROFILE = '(id,firstName,lastName,profilePicture(displayImage~:playableStreams))'

/** https://learn.microsoft.com/en-us/linkedin/shared/references/v2/profile: the API before OpenID Connect. */
export const linkedin: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://api.linkedin.com') => ({
    authorize: `${base}/oauth/v2/authorization`,
    token: `${base}/oauth/v2/accessToken`,
    api: `${base}/v2`,
  }),
  scopes: ['r_emailaddress', 'r_liteprofile'],
  clientAuthentication: 'post',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/me?projection=${PROFILE}`)
    const { elements } = await get(`${api}/emailAddress?q=members&projection=(elements*(handle~))`)
    const name = joinName([localized(user.firstName), localized(user.lastName)])
    const picture = user.profilePicture?.['displayImage~']?.elements?.[0]?.identifiers?.[0]?.identifier
    return {
      sub: user.id,
      emails: onlyEmail(elements[0]?.['handle~']?.emailAddress, true),
      claims: { iss: api, ...named(name), ...pictured(picture) },
    }
  },
}

const localized = (name: ProviderJson) =>
  name?.localized?.[`${name.preferredLocale?.language}_${name.preferredLocale?.country}`]
