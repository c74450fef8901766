// Public facts about the service: settings, keys, health, start page. No secrets and no account data. Tests: here and
// in ../../core/keys/.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { SPECIFIED_PROVIDERS } from '../../config/external-providers.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { VERSION } from '../../version.ts'

const External = Type.Object(Object.fromEntries(SPECIFIED_PROVIDERS.map((name) => [name, Type.Boolean()])), {
  additionalProperties: Type.Boolean(),
})

export const settingsRoutes: FastifyPluginAsyncTypebox<Pick<Deps, 'config' | 'providers' | 'customProviders'>> = async (
  app,
  deps,
) => {
  const { signup, mail, sms, passkeys, web3 } = deps.config
  const settings = {
    external: deps.providers.enabled(),
    disable_signup: signup.disabled,
    autoconfirm: mail.autoconfirm,
    mailer_autoconfirm: mail.autoconfirm,
    phone_autoconfirm: sms.autoconfirm,
    email_enabled: signup.email,
    phone_enabled: signup.phone,
    anonymous_users_enabled: signup.anonymous,
    sms_provider: sms.providers.join(','),
    saml_enabled: false,
    passkeys_enabled: passkeys.enabled,
    web3_ethereum_enabled: web3.ethereum.enabled,
    web3_solana_enabled: web3.solana.enabled,
  }
  app.route({
    method: 'GET',
    url: '/settings',
    schema: {
      operationId: 'getSettings',
      tags: ['service'],
      summary: 'Enabled ways of signing up and in',
      response: {
        200: Type.Object(
          {
            external: External,
            external_custom: Type.Array(
              Type.Object({ identifier: Type.String(), name: Type.String() }, { title: 'ShownProvider' }),
              { description: 'Providers of the admin API that are enabled and listed.' },
            ),
            disable_signup: Type.Boolean(),
            autoconfirm: Type.Boolean(),
            mailer_autoconfirm: Type.Boolean(),
            phone_autoconfirm: Type.Boolean(),
            email_enabled: Type.Boolean(),
            phone_enabled: Type.Boolean(),
            anonymous_users_enabled: Type.Boolean(),
            sms_provider: Type.String(),
            saml_enabled: Type.Boolean(),
            passkeys_enabled: Type.Boolean(),
            web3_ethereum_enabled: Type.Boolean(),
            web3_solana_enabled: Type.Boolean(),
          },
          { title: 'Settings' },
        ),
        ...errorResponses(),
      },
    },
    handler: async () => ({ ...settings, external_custom: await deps.customProviders.shown() }),
  })
}

/** Name of the reference: its client for Go refuses a server with another one. */
const NAME = 'GoTrue'

export const healthRoute: FastifyPluginAsyncTypebox = async (app) => {
  app.route({
    method: 'GET',
    url: '/health',
    logLevel: 'silent',
    schema: {
      operationId: 'getHealth',
      tags: ['service'],
      summary: 'Whether the service answers, and its version',
      response: {
        200: Type.Object({ version: Type.String(), name: Type.String(), description: Type.String() }),
        ...errorResponses(),
      },
    },
    handler: async () => ({ version: VERSION, name: NAME, description: 'User management and authentication service' }),
  })
}
