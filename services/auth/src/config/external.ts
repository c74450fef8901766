import { boolean, httpUrl, text, type Values, type Variables } from '@services/common/config/variables'
import type { signupVariables } from './signup.ts'

export const externalVariables = {
  EXTERNAL_REDIRECT_URL: httpUrl(
    'Target of every sign-in at a provider; replaces the one requested by the application.',
  ),
  EXTERNAL_IOS_BUNDLE_ID: text('Bundle id of an iOS application whose Apple id_tokens are accepted.'),
  SECURITY_MANUAL_LINKING_ENABLED: boolean('Users may link and unlink accounts at providers.', { default: 'false' }),
  MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: boolean(
    'Sign-ins at a provider need no verified address; an unverified address belongs to the user only once they prove it.',
    { default: 'false' },
  ),
} satisfies Variables

export const externalSettings = (
  values: Values<typeof externalVariables & Pick<typeof signupVariables, 'EXTERNAL_FLOW_STATE_EXPIRY_DURATION'>>,
) => ({
  redirectUrl: values.EXTERNAL_REDIRECT_URL,
  iosBundleId: values.EXTERNAL_IOS_BUNDLE_ID,
  manualLinking: values.SECURITY_MANUAL_LINKING_ENABLED,
  allowUnverifiedEmail: values.MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS,
  /** Time from GET /authorize to the provider's callback; the contract requires at least 300 s. */
  stateLifetimeSeconds: Math.max(300, values.EXTERNAL_FLOW_STATE_EXPIRY_DURATION),
})
