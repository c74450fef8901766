// Public facts about the service: settings, keys, health, start page. The one rule: no secrets and no account data.
// Tests: here and in ../../core/keys/. Read next: jwks.routes.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Providers } from '../../adapters/providers/index.ts'
import { EXTERNAL_PROVIDERS } from '../../config/external-providers.ts'
import type { Config } from '../../config.ts'
import { errorResponses } from '../../http/shapes.ts'

const External = Type.Object(Object.fromEntries(EXTERNAL_PROVIDERS.map((name) => [name, Type.Boolean()])), {
  additionalProperties: Type.Boolean(),
})

export const settingsRoutes: FastifyPluginAsyncTypebox<{ config: Config; providers: Providers }> = async (
  app,
  { config, providers },
) => {
  const settings = {
    external: providers.enabled(),
    disable_signup: config.signup.disabled,
    autoconfirm: config.mail.autoconfirm,
    mailer_autoconfirm: config.mail.autoconfirm,
    phone_autoconfirm: config.sms.autoconfirm,
    email_enabled: config.signup.email,
    phone_enabled: config.signup.phone,
    anonymous_users_enabled: config.signup.anonymous,
    sms_provider: config.sms.providers.join(','),
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
            disable_signup: Type.Boolean(),
            autoconfirm: Type.Boolean(),
            mailer_autoconfirm: Type.Boolean(),
            phone_autoconfirm: Type.Boolean(),
            email_enabled: Type.Boolean(),
            phone_enabled: Type.Boolean(),
            anonymous_users_enabled: Type.Boolean(),
            sms_provider: Type.String(),
          },
          { title: 'Settings' },
        ),
        ...errorResponses(),
      },
    },
    handler: async () => settings,
  })
}
