import { boolean, httpUrl, parsed, text, type Values, type Variables } from '@services/common/config'
import { parseSecret } from './jwt.ts'
import type { signupVariables } from './signup.ts'

export const externalVariables = {
  EXTERNAL_REDIRECT_URL: httpUrl('Where every sign-in at a provider ends, instead of what the application asked for.'),
  EXTERNAL_IOS_BUNDLE_ID: text('Bundle id of an iOS application whose Apple id_tokens are accepted.'),
  SECURITY_MANUAL_LINKING_ENABLED: boolean('Users may link and unlink accounts at providers.', { default: 'false' }),
  MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: boolean(
    "Who signs in at a provider need not have a verified address, there or here; an unverified one is not the user's until they prove it.",
    { default: 'false' },
  ),
  ENCRYPTION_KEY: parsed(
    'string',
    'Secret of at least 16 bytes under which provider tokens and second factors are stored; JWT_SECRET when unset, which then cannot be changed without losing them.',
    {},
    parseSecret,
  ),
} satisfies Variables

export const externalSettings = (
  values: Values<typeof externalVariables & Pick<typeof signupVariables, 'EXTERNAL_FLOW_STATE_EXPIRY_DURATION'>>,
) => ({
  redirectUrl: values.EXTERNAL_REDIRECT_URL,
  iosBundleId: values.EXTERNAL_IOS_BUNDLE_ID,
  manualLinking: values.SECURITY_MANUAL_LINKING_ENABLED,
  allowUnverifiedEmail: values.MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS,
  /** Of a sign-in at a provider, from GET /authorize to the provider's answer; at least what the contract wants. */
  stateLifetimeSeconds: Math.max(300, values.EXTERNAL_FLOW_STATE_EXPIRY_DURATION),
})
