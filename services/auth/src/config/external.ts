import { parseCidrs } from '@services/common/config/cidrs'
import {
  baseUrl,
  boolean,
  duration,
  httpUrl,
  integer,
  parsed,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import type { serverVariables } from './server.ts'
import type { signupVariables } from './signup.ts'

export const externalVariables = {
  EXTERNAL_REDIRECT_URL: httpUrl(
    'Target of every sign-in at a provider; replaces the one requested by the application.',
  ),
  EXTERNAL_IOS_BUNDLE_ID: text('Bundle id of an iOS application whose Apple id_tokens are accepted.'),
  SECURITY_MANUAL_LINKING_ENABLED: boolean('Users may link and unlink accounts at providers and wallets.', {
    default: 'false',
  }),
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

/**
 * Longest validity that a signed message can be given. Its hash is stored that long: with a shorter time, a used
 * message would sign in again once the setting is raised.
 */
export const MAX_WEB3_VALIDITY_HOURS = 24

const validity = (chain: string) =>
  duration(`Longest time between the \`Issued At\` of a signed ${chain} message and its sign-in, before or after it.`, {
    default: '10m',
    positive: true,
    max: `${MAX_WEB3_VALIDITY_HOURS}h`,
  })

export const web3Variables = {
  EXTERNAL_WEB3_ETHEREUM_ENABLED: boolean('Users sign in with an Ethereum wallet.', { default: 'false' }),
  EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION: validity('Ethereum'),
  EXTERNAL_WEB3_SOLANA_ENABLED: boolean('Users sign in with a Solana wallet.', { default: 'false' }),
  EXTERNAL_WEB3_SOLANA_MAXIMUM_VALIDITY_DURATION: validity('Solana'),
  WEB3_REQUIRE_NONCE: boolean('Signed messages need a nonce of GET /web3/nonce, which signs in once.', {
    default: 'false',
  }),
} satisfies Variables

export const web3Settings = (values: Values<typeof web3Variables>) => ({
  ethereum: {
    enabled: values.EXTERNAL_WEB3_ETHEREUM_ENABLED,
    validitySeconds: values.EXTERNAL_WEB3_ETHEREUM_MAXIMUM_VALIDITY_DURATION,
  },
  solana: {
    enabled: values.EXTERNAL_WEB3_SOLANA_ENABLED,
    validitySeconds: values.EXTERNAL_WEB3_SOLANA_MAXIMUM_VALIDITY_DURATION,
  },
  requiresNonce: values.WEB3_REQUIRE_NONCE,
})

export const web3Warnings = (values: Values<typeof web3Variables>): string[] =>
  values.WEB3_REQUIRE_NONCE && !values.EXTERNAL_WEB3_ETHEREUM_ENABLED && !values.EXTERNAL_WEB3_SOLANA_ENABLED
    ? ['AUTH_WEB3_REQUIRE_NONCE has no effect while no AUTH_EXTERNAL_WEB3_*_ENABLED is set']
    : []

export const egressVariables = {
  EGRESS_ALLOW_CIDRS: parsed(
    'list',
    'Private networks that requests to addresses of an admin may reach, on any port and also by http. Loopback counts like any other.',
    { default: '' },
    parseCidrs,
  ),
  EGRESS_DENY_CIDRS: parsed(
    'list',
    'Public networks that these requests must not reach. Wins over EGRESS_ALLOW_CIDRS.',
    { default: '' },
    parseCidrs,
  ),
} satisfies Variables

export const egressSettings = (values: Values<typeof egressVariables & Pick<typeof serverVariables, 'PORT'>>) => ({
  allowCidrs: values.EGRESS_ALLOW_CIDRS,
  denyCidrs: values.EGRESS_DENY_CIDRS,
  ownPort: values.PORT,
})

export const customProviderVariables = {
  CUSTOM_OAUTH_ENABLED: boolean('Admins may add providers, `custom:<name>`; disabled: none of them signs in.', {
    default: 'true',
  }),
  CUSTOM_OAUTH_MAX_PROVIDERS: integer('Maximum number of providers of the admin API; 0: no limit.', { default: '0' }),
  CUSTOM_OAUTH_EXTERNAL_URL: baseUrl(
    'Base of the redirect address `/callback` of these providers; unset: API_EXTERNAL_URL.',
  ),
  EXTERNAL_OIDC_PROVIDER_CACHE_TTL: duration('Lifetime of a discovery document of these providers.', {
    default: '1h',
    positive: true,
    max: '168h',
  }),
} satisfies Variables

export const customProviderSettings = (
  values: Values<typeof customProviderVariables & Pick<typeof serverVariables, 'API_EXTERNAL_URL'>>,
) => ({
  enabled: values.CUSTOM_OAUTH_ENABLED,
  /** 0: no limit. */
  max: values.CUSTOM_OAUTH_MAX_PROVIDERS,
  redirectUri: `${values.CUSTOM_OAUTH_EXTERNAL_URL ?? values.API_EXTERNAL_URL}/callback`,
  discoveryKeptSeconds: values.EXTERNAL_OIDC_PROVIDER_CACHE_TTL,
})
