import type { Config } from '../../config.ts'

const pickFrom = <Part extends object, Key extends keyof Part>(part: Part, keys: readonly Key[]): Pick<Part, Key> =>
  Object.fromEntries(keys.map((key) => [key, part[key]])) as Pick<Part, Key>

/**
 * Settings that travel with a request: while a change of them rolls out, the worker may belong to an instance with
 * others.
 */
export const requestSettings = ({ jwt, mail, siteUrl, signup, sms, smtp }: Config) => ({
  siteUrl,
  jwt: pickFrom(jwt, ['defaultRole']),
  signup: pickFrom(signup, ['disabled']),
  smtp: pickFrom(smtp, ['host', 'from']),
  mail: pickFrom(mail, [
    'autoconfirm',
    'authorizedAddresses',
    'byHook',
    'codeLength',
    'codeLifetimeSeconds',
    'defaultLocale',
    'inviteLifetimeSeconds',
    'linkPaths',
    'locales',
    'minGapSeconds',
    'secureEmailChange',
    'signInLinkGapSeconds',
  ]),
  sms: pickFrom(sms, [
    'autoconfirm',
    'byHook',
    'codeLength',
    'codeLifetimeSeconds',
    'minGapSeconds',
    'providers',
    'template',
  ]),
})

export type RequestSettings = ReturnType<typeof requestSettings>

/** Replaces a worker's settings by those of the instance that received the request. */
export const withRequestSettings = (config: Config, settings: RequestSettings): Config => ({
  ...config,
  siteUrl: settings.siteUrl,
  jwt: { ...config.jwt, ...settings.jwt },
  signup: { ...config.signup, ...settings.signup },
  smtp: { ...config.smtp, ...settings.smtp },
  mail: { ...config.mail, ...settings.mail },
  sms: { ...config.sms, ...settings.sms },
})
