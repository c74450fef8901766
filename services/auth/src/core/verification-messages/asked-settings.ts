import type { Config } from '../../config.ts'

const pickFrom = <Part extends object, Key extends keyof Part>(part: Part, keys: readonly Key[]): Pick<Part, Key> =>
  Object.fromEntries(keys.map((key) => [key, part[key]])) as Pick<Part, Key>

/** Settings that travel with a request: while a change of them rolls out, the worker may belong to an instance with others. */
export const settingsAsked = ({ jwt, mail, siteUrl, signup, sms, smtp }: Config) => ({
  siteUrl,
  jwt: pickFrom(jwt, ['defaultRole']),
  signup: pickFrom(signup, ['disabled']),
  smtp: pickFrom(smtp, ['host', 'from']),
  mail: pickFrom(mail, [
    'autoconfirm',
    'authorizedAddresses',
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
  sms: pickFrom(sms, ['autoconfirm', 'codeLength', 'codeLifetimeSeconds', 'minGapSeconds', 'providers', 'template']),
})

export type AskedSettings = ReturnType<typeof settingsAsked>

/** Replaces a worker's settings by those of the instance that received the request. */
export const withSettingsAsked = (config: Config, asked: AskedSettings): Config => ({
  ...config,
  siteUrl: asked.siteUrl,
  jwt: { ...config.jwt, ...asked.jwt },
  signup: { ...config.signup, ...asked.signup },
  smtp: { ...config.smtp, ...asked.smtp },
  mail: { ...config.mail, ...asked.mail },
  sms: { ...config.sms, ...asked.sms },
})
