import { baseUrl, boolean, httpUrl, text } from '@services/common/config'
import { forEach } from './for-each.ts'

/** The eighteen external providers, as they are named in `provider`, `/settings` and `EXTERNAL_<PROVIDER>_…`. */
export const EXTERNAL_PROVIDERS = [
  'apple',
  'azure',
  'bitbucket',
  'discord',
  'facebook',
  'figma',
  'github',
  'gitlab',
  'google',
  'keycloak',
  'linkedin',
  'notion',
  'slack',
  'snapchat',
  'spotify',
  'twitch',
  'twitter',
  'workos',
] as const
type ExternalProvider = (typeof EXTERNAL_PROVIDERS)[number]

export const externalProviderVariables = forEach(EXTERNAL_PROVIDERS, (provider) => ({
  [`EXTERNAL_${provider.toUpperCase()}_ENABLED`]: boolean(`Sign-in with ${provider}.`, { default: 'false' }),
  [`EXTERNAL_${provider.toUpperCase()}_CLIENT_ID`]: text('OAuth client id; required when enabled.'),
  [`EXTERNAL_${provider.toUpperCase()}_SECRET`]: text('OAuth client secret; required when enabled.'),
  [`EXTERNAL_${provider.toUpperCase()}_REDIRECT_URI`]: httpUrl('Callback address; required when enabled.'),
  [`EXTERNAL_${provider.toUpperCase()}_URL`]: baseUrl("Base address of a self-hosted provider; keycloak's realm."),
}))

interface ExternalProviderSettings {
  enabled: boolean
  clientId: string | undefined
  secret: string | undefined
  redirectUri: string | undefined
  url: string | undefined
}

export function externalProviderSettings(values: Record<string, unknown>) {
  return Object.fromEntries(
    EXTERNAL_PROVIDERS.map((provider) => {
      const setting = (name: string) => values[`EXTERNAL_${provider.toUpperCase()}_${name}`]
      return [
        provider,
        {
          enabled: setting('ENABLED') as boolean,
          clientId: setting('CLIENT_ID') as string | undefined,
          secret: setting('SECRET') as string | undefined,
          redirectUri: setting('REDIRECT_URI') as string | undefined,
          url: setting('URL') as string | undefined,
        },
      ]
    }),
  ) as Record<ExternalProvider, ExternalProviderSettings>
}

export function externalProviderProblems(values: Record<string, unknown>): string[] {
  return EXTERNAL_PROVIDERS.flatMap((provider) => {
    const prefix = `EXTERNAL_${provider.toUpperCase()}_`
    if (!values[`${prefix}ENABLED`]) return []
    const needed = ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', ...(provider === 'keycloak' ? ['URL'] : [])]
    return needed
      .filter((name) => values[prefix + name] === undefined)
      .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
  })
}

/** The switches are read and checked already, so that a configuration stays valid when external sign-in arrives. */
export const externalProviderWarnings = (values: Record<string, unknown>): string[] =>
  EXTERNAL_PROVIDERS.map((provider) => `EXTERNAL_${provider.toUpperCase()}_ENABLED`)
    .filter((name) => values[name])
    .map((name) => `AUTH_${name} has no effect in this version: its feature is not there yet`)
