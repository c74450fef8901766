import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { EXTERNAL_PROVIDERS } from '../config/external-providers.ts'
import type { Config } from '../config.ts'
import { errorResponses } from '../http/shapes.ts'

const External = Type.Object(Object.fromEntries(EXTERNAL_PROVIDERS.map((name) => [name, Type.Boolean()])))

/** GET /settings: what an application may offer its users. No secrets, no account data. */
export const settingsRoutes: FastifyPluginAsyncTypebox<{ config: Config }> = async (app, { config }) => {
  const settings = {
    // What is configured but not there yet is not offered.
    external: Object.fromEntries(EXTERNAL_PROVIDERS.map((name) => [name, false])),
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
      tags: ['service'],
      summary: 'Which ways of signing up and in are offered',
      response: {
        200: Type.Object({
          external: External,
          disable_signup: Type.Boolean(),
          autoconfirm: Type.Boolean(),
          mailer_autoconfirm: Type.Boolean(),
          phone_autoconfirm: Type.Boolean(),
          email_enabled: Type.Boolean(),
          phone_enabled: Type.Boolean(),
          anonymous_users_enabled: Type.Boolean(),
          sms_provider: Type.String(),
        }),
        ...errorResponses(),
      },
    },
    handler: async () => settings,
  })
}
