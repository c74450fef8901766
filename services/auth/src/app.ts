// The map of the service: registers every route by hand, in scopes by caller. A route that is not in this file does not
// exist. The folder in flows/ is named like the endpoint.
import cors from '@fastify/cors'
import { documentApi } from '@services/common/http/api-docs'
import { installErrorHandler } from '@services/common/http/error-handler'
import { healthRoutes } from '@services/common/http/health.routes'
import { createHttpServer } from '@services/common/http/http-server'
import { answerWithin } from '@services/common/request-deadline'
import type { FastifyInstance } from 'fastify'
import { apiDocs } from './api-docs.ts'
import { recordOrigin } from './core/audit/audit.ts'
import { whileSending } from './core/outbox/sending-request.ts'
import type { Deps } from './deps.ts'
import { apiError } from './errors.ts'
import { exportRoutes } from './flows/account/export.routes.ts'
import { logoutRoutes } from './flows/account/logout.routes.ts'
import { reauthenticateRoutes } from './flows/account/reauthenticate.routes.ts'
import { ownSessionsRoutes } from './flows/account/sessions.routes.ts'
import { userRoutes } from './flows/account/user.routes.ts'
import { auditRoutes } from './flows/admin/audit.routes.ts'
import { customProvidersRoutes } from './flows/admin/custom-providers/custom-providers.routes.ts'
import { providersRoutes } from './flows/admin/custom-providers/providers.routes.ts'
import { hooksRoutes } from './flows/admin/hooks/hooks.routes.ts'
import { generateLinkRoutes, inviteRoutes, recoverUserRoutes } from './flows/admin/links/links.routes.ts'
import { mailTemplatesRoutes } from './flows/admin/mail-templates/mail-templates.routes.ts'
import { messagesRoutes } from './flows/admin/messages/messages.routes.ts'
import { clientStatisticsRoutes } from './flows/admin/oauth/client-statistics.routes.ts'
import { oauthClientsRoutes } from './flows/admin/oauth/clients.routes.ts'
import { oauthScopesRoutes } from './flows/admin/oauth/scopes.routes.ts'
import { keysRoutes } from './flows/admin/operation/keys.routes.ts'
import { settingsOfAdminRoutes } from './flows/admin/operation/settings.routes.ts'
import { statisticsRoutes } from './flows/admin/statistics.routes.ts'
import { adminFactorsRoutes, adminSessionsRoutes, adminUserRoutes } from './flows/admin/users/user.routes.ts'
import { adminGrantsRoutes } from './flows/admin/users/user-grants.routes.ts'
import { adminPasskeysRoutes } from './flows/admin/users/user-passkeys.routes.ts'
import { createUserRoutes, listUsersRoutes } from './flows/admin/users/users.routes.ts'
import { webhooksRoutes } from './flows/admin/webhooks/webhooks.routes.ts'
import { otpRoutes } from './flows/message-requests/otp.routes.ts'
import { recoverRoutes } from './flows/message-requests/recover.routes.ts'
import { resendRoutes } from './flows/message-requests/resend.routes.ts'
import { factorsRoutes } from './flows/mfa/factors.routes.ts'
import { recoveryCodesRoutes } from './flows/mfa/recovery-codes.routes.ts'
import { authorizeRoutes } from './flows/oauth/authorize.routes.ts'
import { callbackRoutes } from './flows/oauth/callback.routes.ts'
import { ownIdentitiesRoutes } from './flows/oauth/identities.routes.ts'
import { providerTestsRoutes } from './flows/oauth/provider-tests.routes.ts'
import { oauthAuthorizeRoutes } from './flows/oauth-server/authorize/authorize.routes.ts'
import { oauthConsentRoutes } from './flows/oauth-server/authorize/consent.routes.ts'
import { formPostRoutes } from './flows/oauth-server/authorize/form-post.routes.ts'
import { ownGrantsRoutes } from './flows/oauth-server/authorize/grants.routes.ts'
import { parRoutes } from './flows/oauth-server/authorize/par.routes.ts'
import { deviceAuthorizationRoutes } from './flows/oauth-server/device/device-authorization.routes.ts'
import { oauthLogoutRoutes } from './flows/oauth-server/logout/logout.routes.ts'
import { registerRoutes } from './flows/oauth-server/register/register.routes.ts'
import { introspectRoutes } from './flows/oauth-server/token/introspect.routes.ts'
import { revokeRoutes } from './flows/oauth-server/token/revoke.routes.ts'
import { oauthTokenRoutes } from './flows/oauth-server/token/token.routes.ts'
import { userinfoRoutes } from './flows/oauth-server/userinfo/userinfo.routes.ts'
import { passkeysRoutes } from './flows/passkeys/passkeys.routes.ts'
import { passkeySignInRoutes } from './flows/passkeys/sign-in.routes.ts'
import { passkeySignUpRoutes } from './flows/passkeys/sign-up.routes.ts'
import { passkeyDocumentRoutes } from './flows/passkeys/well-known.routes.ts'
import { absentFeatureRoutes } from './flows/settings/absent-features.routes.ts'
import { jwksRoutes } from './flows/settings/jwks.routes.ts'
import { healthRoute, settingsRoutes } from './flows/settings/settings.routes.ts'
import { startPageRoutes } from './flows/settings/start-page.routes.ts'
import { signupRoutes } from './flows/signup/signup.routes.ts'
import { tokenRoutes } from './flows/token/token.routes.ts'
import { adminDevicesRoutes, ownDevicesRoutes } from './flows/trusted-devices/trusted-devices.routes.ts'
import { verifyRoutes } from './flows/verify/verify.routes.ts'
import { web3NonceRoutes } from './flows/web3/nonce.routes.ts'
import { withoutBasePath } from './http/base-path.ts'
import { errorAnswers } from './http/bodies/error-bodies.ts'
import { acceptJsonBodies } from './http/bodies/json-body.ts'
import { acceptOAuthForms } from './http/bodies/oauth-body.ts'
import { answerInOAuthForm } from './http/bodies/oauth-form.ts'
import { PAGE_HEADERS } from './http/bodies/paging.ts'
import { requireAdmin } from './http/caller/admin-only.ts'
import { requireUser } from './http/caller/authenticate.ts'
import { refuseDisabledPasskeys, requirePasskeys } from './http/caller/passkeys-only.ts'
import { requireOAuthServer } from './http/caller/require-oauth-server.ts'
import { requireSubject } from './http/caller/subject.ts'
import { DEVICE_HEADERS, DEVICE_TOKEN } from './http/caller/trusted-device.ts'
import { clientOf } from './http/limits/client.ts'
import { pageFileRoutes } from './http/pages/page-files.ts'

/** An access token with the largest metadata of both kinds (core/users/metadata.ts) takes about 45 KiB. */
const MAX_HEADER_BYTES = 64 * 1024

/** Builds the HTTP server; nothing listens yet. */
export async function createApp(deps: Deps): Promise<FastifyInstance> {
  const { config } = deps
  const { externalUrl } = config.server
  const basePath = withoutBasePath(externalUrl)
  const app = createHttpServer(
    {
      ...{ name: 'auth', externalUrl, log: deps.log, telemetry: config.telemetry, answers: errorAnswers },
      requestIdHeader: config.server.requestIdHeader,
      refusal: (status, message) => apiError(status === 415 ? 'bad_json' : 'validation_failed', { status, message }),
      isStopping: deps.isStopping,
    },
    {
      rewriteUrl: basePath.rewriteUrl,
      http: { maxHeaderSize: MAX_HEADER_BYTES },
      requestTimeout: config.server.maxRequestSeconds * 1000,
      routerOptions: { maxParamLength: 200, ignoreTrailingSlash: true },
    },
  )
  basePath.recordRoutes(app)
  answerWithin(app, config.server.maxRequestSeconds * 1000)
  app.addHook('onRequest', (request, _reply, done) => {
    recordOrigin(request.log, () => clientOf(request, config))
    done()
  })
  if (config.mail.byHook || config.sms.byHook) {
    // After the body, whose events carry no request context.
    app.addHook('preValidation', (request, _reply, done) => {
      whileSending({ ip: clientOf(request, config).ip ?? undefined }, done)
    })
  }
  acceptJsonBodies(app)
  // Any origin: only the application's own code sets the authorization header, so a foreign page has no rights.
  await app.register(cors, {
    origin: '*',
    strictPreflight: false,
    methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [...CORS_HEADERS, ...config.server.corsAllowedHeaders],
    exposedHeaders: [...PAGE_HEADERS, ...ANSWER_HEADERS, ...DEVICE_HEADERS],
    maxAge: 600,
  })
  refuseDisabledPasskeys(app, config)
  // After the hooks that set headers on refusals too, and before the routes, whose methods it learns.
  installErrorHandler(app, errorAnswers)
  await documentApi(app, apiDocs(config))

  // Public
  healthRoutes(app, { ...deps, warnings: deps.sealedRows.warnings })
  await app.register(startPageRoutes, { config })
  await app.register(healthRoute)
  await app.register(settingsRoutes, { config, providers: deps.providers, customProviders: deps.customProviders })
  await app.register(jwksRoutes, { keys: deps.keys, config })
  await app.register(signupRoutes, { deps })
  await app.register(verifyRoutes, { deps })
  await app.register(tokenRoutes, { deps })
  await app.register(web3NonceRoutes, { deps })
  await app.register(otpRoutes, { deps })
  await app.register(recoverRoutes, { deps })
  await app.register(resendRoutes, { deps })
  await app.register(authorizeRoutes, { deps })
  await app.register(callbackRoutes, { deps })
  await app.register(registerRoutes, { deps })
  await app.register(oauthAuthorizeRoutes, { deps })
  await app.register(oauthLogoutRoutes, { deps })
  await app.register(formPostRoutes, { deps })
  await app.register(absentFeatureRoutes, { caller: 'anyone' })

  // Pages for people; their files are also those of the pages behind mail links
  await app.register(pageFileRoutes, { deps })
  if (config.pages.enabled) {
    const { hostedPages } = await import('./flows/pages/pages.routes.ts')
    await app.register(hostedPages, { deps, prefix: '/ui' })
  }

  // Applications, as clients of the OAuth server
  await app.register(async (scope) => {
    requireOAuthServer(scope, config)
    answerInOAuthForm(scope)
    acceptOAuthForms(scope)
    await scope.register(oauthTokenRoutes, { deps })
    await scope.register(revokeRoutes, { deps })
    await scope.register(deviceAuthorizationRoutes, { deps })
    await scope.register(parRoutes, { deps })
    await scope.register(introspectRoutes, { deps })
  })

  // Passkeys: while they are disabled, no path of theirs checks a token
  await app.register(async (scope) => {
    requirePasskeys(scope, config)
    await scope.register(passkeySignInRoutes, { deps })
    await scope.register(passkeyDocumentRoutes, { config })
    await scope.register(passkeySignUpRoutes, { deps })
    await scope.register(async (userScope) => {
      requireUser(userScope, deps)
      await userScope.register(passkeysRoutes, { deps })
    })
  })

  // Users, with their access token
  await app.register(async (scope) => {
    requireUser(scope, deps)
    await scope.register(userRoutes, { deps })
    await scope.register(exportRoutes, { deps })
    await scope.register(ownSessionsRoutes, { deps })
    await scope.register(ownIdentitiesRoutes, { deps })
    await scope.register(logoutRoutes, { deps })
    await scope.register(reauthenticateRoutes, { deps })
    await scope.register(factorsRoutes, { deps })
    await scope.register(recoveryCodesRoutes, { deps })
    await scope.register(ownDevicesRoutes, { deps })
    await scope.register(oauthConsentRoutes, { deps })
    await scope.register(ownGrantsRoutes, { deps })
  })

  // The OAuth server: while it is disabled, no path of its own checks a token
  await app.register(async (scope) => {
    requireOAuthServer(scope, config)
    await scope.register(userinfoRoutes, { deps })
  })

  const consoleSessions = await openConsole(app, deps)

  // Admins, with a token whose role is one of AUTH_JWT_ADMIN_ROLES or the session of the console
  await app.register(async (scope) => {
    requireAdmin(scope, deps, consoleSessions?.adminOf)
    await scope.register(listUsersRoutes, { deps })
    await scope.register(createUserRoutes, { deps })
    await scope.register(auditRoutes, { deps })
    await scope.register(messagesRoutes, { deps })
    await scope.register(statisticsRoutes, { deps })
    await scope.register(customProvidersRoutes, { deps })
    await scope.register(oauthClientsRoutes, { deps })
    await scope.register(clientStatisticsRoutes, { deps })
    await scope.register(oauthScopesRoutes, { deps })
    await scope.register(providersRoutes, { deps })
    await scope.register(providerTestsRoutes, { deps })
    await scope.register(webhooksRoutes, { deps })
    await scope.register(hooksRoutes, { deps })
    await scope.register(mailTemplatesRoutes, { deps })
    await scope.register(settingsOfAdminRoutes, { deps })
    await scope.register(keysRoutes, { deps })
    await scope.register(inviteRoutes, { deps })
    await scope.register(generateLinkRoutes, { deps })
    await scope.register(absentFeatureRoutes, { caller: 'admin' })
    // Operations on the user of the path
    await scope.register(async (subjectScope) => {
      requireSubject(subjectScope, deps)
      await subjectScope.register(adminUserRoutes, { deps })
      await subjectScope.register(recoverUserRoutes, { deps })
      await subjectScope.register(adminSessionsRoutes, { deps })
      await subjectScope.register(adminFactorsRoutes, { deps })
      await subjectScope.register(adminDevicesRoutes, { deps })
      await subjectScope.register(adminPasskeysRoutes, { deps })
      await subjectScope.register(adminGrantsRoutes, { deps })
    })
  })
  return app
}

/** Registers the console and returns its sessions. Where it is disabled, nothing of it is loaded. */
async function openConsole(app: FastifyInstance, deps: Deps) {
  if (!deps.config.console.enabled) return undefined
  const { consoleRoutes } = await import('./console/console.routes.ts')
  const { createConsoleSessions } = await import('./console/console-session.ts')
  const sessions = createConsoleSessions(deps)
  await app.register(consoleRoutes, { deps, sessions })
  return sessions
}

/** Answer headers that scripts read, beside those of lists and of trusted devices. */
const ANSWER_HEADERS = [
  ...['X-Supabase-Api-Version', 'x-sb-error-code', 'Retry-After', 'ETag', 'Deprecation', 'WWW-Authenticate'],
]

/** Request headers of browsers: the reference's list and auth-js's additions. */
const CORS_HEADERS = [
  'Accept',
  'Authorization',
  'Content-Type',
  'X-Client-IP',
  'X-Client-Info',
  'X-JWT-AUD',
  'x-use-cookie',
  'X-Supabase-Api-Version',
  'apikey',
  DEVICE_TOKEN,
  'If-Match',
  'DPoP',
  // Sent by tracing clients and by clients that count retries.
  'traceparent',
  'tracestate',
  'baggage',
  'x-retry-count',
]
