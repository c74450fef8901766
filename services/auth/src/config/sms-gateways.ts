import { baseUrl, duration, oneOf, parsed, text, type Values, type Variables } from '@services/common/config/variables'
import { httpGatewayProblems, sendsTexts } from '../adapters/sms/http-gateway.ts'
import {
  parseHttpBody,
  parseHttpGatewayUrl,
  parseHttpHeaders,
  parseSuccessRule,
} from '../adapters/sms/http-settings.ts'
import { isHookEnabled } from './hooks/hook-variables.ts'
import type { smsVariables } from './sms.ts'

/** Gateways that SMS_PROVIDER may list; `http` is any other one, described by SMS_HTTP_…. */
const SMS_PROVIDERS = ['twilio', 'messagebird', 'vonage', 'textlocal', 'http'] as const
type SmsProvider = (typeof SMS_PROVIDERS)[number]

export const smsGatewayVariables = {
  SMS_TIMEOUT: duration('Longest wait for a gateway.', { default: '10s', positive: true, max: '1h' }),
  SMS_PROVIDER: parsed(
    `list of ${SMS_PROVIDERS.join(', ')}`,
    'Gateways for SMS; if one fails, the next one is tried.',
    { default: '' },
    smsProviders,
  ),
  SMS_TWILIO_ACCOUNT_SID: text('Twilio account; required when listed.'),
  SMS_TWILIO_AUTH_TOKEN: text('Twilio token; required when listed.', { secret: true }),
  SMS_TWILIO_MESSAGE_SERVICE_SID: text('Twilio messaging service (`MG…`) or sender; required when listed.'),
  SMS_TWILIO_CONTENT_SID: text('Twilio content template of WhatsApp messages; its variable 1 is the code.'),
  SMS_TWILIO_URL: baseUrl('Base address of Twilio.', { default: 'https://api.twilio.com' }),
  SMS_MESSAGEBIRD_ACCESS_KEY: text('MessageBird access key; required when listed.', { secret: true }),
  SMS_MESSAGEBIRD_ORIGINATOR: text('MessageBird originator; required when listed.'),
  SMS_MESSAGEBIRD_URL: baseUrl('Base address of MessageBird.', { default: 'https://rest.messagebird.com' }),
  SMS_VONAGE_API_KEY: text('Vonage key; required when listed.', { secret: true }),
  SMS_VONAGE_API_SECRET: text('Vonage secret; required when listed.', { secret: true }),
  SMS_VONAGE_FROM: text('Vonage sender; required when listed.'),
  SMS_VONAGE_URL: baseUrl('Base address of Vonage.', { default: 'https://rest.nexmo.com' }),
  SMS_TEXTLOCAL_API_KEY: text('TextLocal key; required when listed.', { secret: true }),
  SMS_TEXTLOCAL_SENDER: text('TextLocal sender; required when listed.'),
  SMS_TEXTLOCAL_URL: baseUrl('Base address of TextLocal.', { default: 'https://api.textlocal.in' }),
  SMS_HTTP_URL: parsed(
    'URL',
    'Address of the generic gateway, with the placeholders of SMS_HTTP_BODY; required when listed.',
    { secret: true },
    parseHttpGatewayUrl,
  ),
  SMS_HTTP_METHOD: oneOf(['post', 'put', 'get'], 'Method of its requests; `get` sends no body.', { default: 'post' }),
  SMS_HTTP_HEADERS: parsed(
    'JSON',
    'Its headers as an object; `content-type` is JSON (unset) or form.',
    { default: '{}', secret: true },
    parseHttpHeaders,
  ),
  SMS_HTTP_BODY: parsed(
    'template',
    'Its body; `{{ .To }}` (digits), `{{ .Text }}`, `{{ .Code }}`, `{{ .MessageID }}` are escaped as the content type asks.',
    { default: '{"to":"{{ .To }}","text":"{{ .Text }}"}', secret: true },
    parseHttpBody,
  ),
  SMS_HTTP_SUCCESS: parsed(
    'list',
    'Answers that accept a message: statuses and members of the JSON, such as `200-299,result.status=ok`.',
    { default: '200-299' },
    parseSuccessRule,
  ),
  SMS_HTTP_MESSAGE_ID: text("Path of the message's id in its JSON answer, such as `messages.0.id`."),
} satisfies Variables

type GatewayValues = Values<typeof smsGatewayVariables>

export const smsGatewaySettings = (values: GatewayValues) => ({
  providers: values.SMS_PROVIDER,
  timeoutSeconds: values.SMS_TIMEOUT,
  // Empty only for unlisted gateways: completeGateways drops the incomplete ones.
  twilio: {
    url: values.SMS_TWILIO_URL,
    accountSid: values.SMS_TWILIO_ACCOUNT_SID ?? '',
    authToken: values.SMS_TWILIO_AUTH_TOKEN ?? '',
    sender: values.SMS_TWILIO_MESSAGE_SERVICE_SID ?? '',
    contentSid: values.SMS_TWILIO_CONTENT_SID,
  },
  messagebird: {
    url: values.SMS_MESSAGEBIRD_URL,
    accessKey: values.SMS_MESSAGEBIRD_ACCESS_KEY ?? '',
    originator: values.SMS_MESSAGEBIRD_ORIGINATOR ?? '',
  },
  vonage: {
    url: values.SMS_VONAGE_URL,
    apiKey: values.SMS_VONAGE_API_KEY ?? '',
    apiSecret: values.SMS_VONAGE_API_SECRET ?? '',
    from: values.SMS_VONAGE_FROM ?? '',
  },
  textlocal: {
    url: values.SMS_TEXTLOCAL_URL,
    apiKey: values.SMS_TEXTLOCAL_API_KEY ?? '',
    sender: values.SMS_TEXTLOCAL_SENDER ?? '',
  },
  http: httpGatewaySettings(values),
})

const httpGatewaySettings = (values: GatewayValues) => ({
  url: values.SMS_HTTP_URL ?? '',
  method: values.SMS_HTTP_METHOD.toUpperCase(),
  headers: values.SMS_HTTP_HEADERS,
  body: values.SMS_HTTP_BODY,
  success: values.SMS_HTTP_SUCCESS,
  messageIdPath: values.SMS_HTTP_MESSAGE_ID,
})

export type PhoneReach = Values<
  Pick<typeof smsGatewayVariables, 'SMS_PROVIDER'> & Pick<typeof smsVariables, 'SMS_AUTOCONFIRM' | 'SMS_TEST_OTP'>
>

/** Whether a code can be delivered, or none is needed. */
export const canReachPhones = (values: PhoneReach) =>
  values.SMS_PROVIDER.length > 0 ||
  isHookEnabled(values, 'send-sms') ||
  values.SMS_AUTOCONFIRM ||
  values.SMS_TEST_OTP.size > 0

const SMS_CREDENTIALS = {
  twilio: ['SMS_TWILIO_ACCOUNT_SID', 'SMS_TWILIO_AUTH_TOKEN', 'SMS_TWILIO_MESSAGE_SERVICE_SID'],
  messagebird: ['SMS_MESSAGEBIRD_ACCESS_KEY', 'SMS_MESSAGEBIRD_ORIGINATOR'],
  vonage: ['SMS_VONAGE_API_KEY', 'SMS_VONAGE_API_SECRET', 'SMS_VONAGE_FROM'],
  textlocal: ['SMS_TEXTLOCAL_API_KEY', 'SMS_TEXTLOCAL_SENDER'],
  http: ['SMS_HTTP_URL'],
} as const satisfies Record<SmsProvider, readonly (keyof typeof smsGatewayVariables)[]>

const missingCredentials = (values: GatewayValues, provider: SmsProvider) =>
  SMS_CREDENTIALS[provider].filter((name) => values[name] === undefined)

export const completeGateways = (values: GatewayValues): SmsProvider[] =>
  values.SMS_PROVIDER.filter((provider) => missingCredentials(values, provider).length === 0)

export const smsGatewayGaps = (values: GatewayValues): string[] =>
  values.SMS_PROVIDER.flatMap((provider) =>
    missingCredentials(values, provider).map(
      (name) => `AUTH_${name} is required while AUTH_SMS_PROVIDER lists ${provider}`,
    ),
  )

type SmsValues = GatewayValues & Pick<Values<typeof smsVariables>, 'SMS_ACCOUNT_EXISTS_ENABLED'>

const IS_REFUSED = 'AUTH_SMS_ACCOUNT_EXISTS_ENABLED sends a text without a code'

/** Gateways that can only deliver a code, and would send an empty one. */
function noticeProblems(values: SmsValues): string[] {
  if (!values.SMS_ACCOUNT_EXISTS_ENABLED || isHookEnabled(values, 'send-sms')) return []
  const { SMS_PROVIDER: providers, SMS_HTTP_URL: url, SMS_TWILIO_CONTENT_SID: content } = values
  const isCodeOnly = providers.includes('http') && url !== undefined && !sendsTexts(httpGatewaySettings(values))
  const isTemplate = providers.includes('twilio') && content !== undefined
  return [
    ...(isCodeOnly ? [`${IS_REFUSED}: AUTH_SMS_HTTP_BODY (or AUTH_SMS_HTTP_URL) must hold {{ .Text }}`] : []),
    ...(isTemplate ? [`${IS_REFUSED}: it excludes AUTH_SMS_TWILIO_CONTENT_SID, whose template needs one`] : []),
  ]
}

export function smsGatewayProblems(values: SmsValues): string[] {
  const { SMS_TWILIO_ACCOUNT_SID: account, SMS_HTTP_URL: httpAddress } = values
  // Otherwise Twilio's SDK refuses the first message.
  const isOtherSid = values.SMS_PROVIDER.includes('twilio') && account !== undefined && !account.startsWith('AC')
  const hasHttp = values.SMS_PROVIDER.includes('http') && httpAddress !== undefined
  return [
    ...(isOtherSid ? ['AUTH_SMS_TWILIO_ACCOUNT_SID must start with AC'] : []),
    ...(hasHttp ? httpGatewayProblems(httpGatewaySettings(values)) : []),
    ...noticeProblems(values),
  ]
}

function smsProviders(value: string): SmsProvider[] {
  const names = value
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)
  const providers = SMS_PROVIDERS.filter((provider) => names.includes(provider))
  if (names.length !== providers.length) throw new Error(`must list, each once, some of ${SMS_PROVIDERS.join(', ')}`)
  return providers.toSorted((a, b) => names.indexOf(a) - names.indexOf(b))
}
