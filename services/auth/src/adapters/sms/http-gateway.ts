import { callGateway, type GatewayAnswer, jsonAnswer } from './call-gateway.ts'
import { failureOfStatus, GatewayRefusal, messageIdFrom, type SmsGateway } from './gateway.ts'
import { HTTP_VARIABLES, type SuccessRule } from './http-settings.ts'
import { fillIn, variablesOf } from './sms-text.ts'

export interface HttpGatewaySettings {
  url: string
  method: string
  headers: Record<string, string>
  body: string
  success: SuccessRule
  messageIdPath: string | undefined
}

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Gateway that takes one HTTP request per message, described entirely by settings. */
export function createHttpGateway(settings: HttpGatewaySettings, timeoutSeconds: number): SmsGateway {
  const contentType = contentTypeOf(settings)
  const hasBody = settings.method !== 'GET'
  return {
    name: 'http',
    channels: ['sms'],
    async send({ id, to, text, code }) {
      const variables = { To: to, Text: text, Code: code, MessageID: id }
      const answer = await callGateway('http', timeoutSeconds, {
        method: settings.method,
        url: fillIn(settings.url, variables, encodeURIComponent),
        headers: hasBody ? { ...settings.headers, 'content-type': contentType } : settings.headers,
        body: hasBody ? fillIn(settings.body, variables, escapeFor(contentType)) : undefined,
      })
      return { providerMessageId: readAnswer(settings, answer) }
    },
  }
}

function usedVariables({ method, url, body }: HttpGatewaySettings): Set<string> {
  return variablesOf(url + (method === 'GET' ? '' : body), HTTP_VARIABLES)
}

/** Whether its requests hold the text of a message; without it they can only deliver a code. */
export const sendsTexts = (settings: HttpGatewaySettings): boolean => usedVariables(settings).has('Text')

/** Problems of the settings that fail the start, with the variables' names. */
export function httpGatewayProblems(settings: HttpGatewaySettings): string[] {
  const hasBody = settings.method !== 'GET'
  const used = usedVariables(settings)
  const isComplete = used.has('To') && (used.has('Text') || used.has('Code'))
  const missing = 'AUTH_SMS_HTTP_BODY (or AUTH_SMS_HTTP_URL) must hold {{ .To }} and {{ .Text }} or {{ .Code }}'
  return [...(isComplete ? [] : [missing]), ...(hasBody ? bodyProblems(settings) : [])]
}

function bodyProblems(settings: HttpGatewaySettings): string[] {
  const contentType = contentTypeOf(settings)
  if (isForm(contentType)) return []
  if (!isJson(contentType)) return [`AUTH_SMS_HTTP_HEADERS may give as content-type ${JSON_TYPE} or ${FORM_TYPE}`]
  try {
    // Texts, and codes with a leading 0, are JSON only inside quotes.
    JSON.parse(fillIn(settings.body, { To: '1', Text: 'a', Code: '01', MessageID: 'a' }))
    return []
  } catch {
    return ['AUTH_SMS_HTTP_BODY must be JSON, or AUTH_SMS_HTTP_HEADERS must give another content-type']
  }
}

const contentTypeOf = ({ headers }: HttpGatewaySettings) => headers['content-type'] ?? JSON_TYPE
const isForm = (contentType: string) => contentType.toLowerCase().startsWith(FORM_TYPE)
const isJson = (contentType: string) => /^application\/([\w.-]+\+)?json\b/i.test(contentType)

function escapeFor(contentType: string): (value: string) => string {
  return isForm(contentType) ? encodeURIComponent : (value) => JSON.stringify(value).slice(1, -1)
}

/**
 * Returns the message's id, if a path to it is set. The reason of a refusal is unknown, so the next gateway is tried. A
 * 2xx answer that breaks the rule is not retried: a wrong rule would send, and pay, again and again.
 */
function readAnswer({ success, messageIdPath }: HttpGatewaySettings, { status, text }: GatewayAnswer) {
  const isExpected = success.statuses.some(([from, to]) => status >= from && status <= to)
  if (!isExpected) throw status >= 200 && status < 300 ? refusal(status, 'the status') : failureOfStatus('http', status)
  const fact = jsonAnswer(text)
  const wrong = success.facts.find(({ path, value }) => String(fact(path)) !== value)
  if (wrong) throw refusal(status, wrong.path)
  return messageIdPath ? messageIdFrom(fact(messageIdPath)) : undefined
}

const refusal = (status: number, what: string) =>
  new GatewayRefusal(`http: answered ${status}, ${what} is not as AUTH_SMS_HTTP_SUCCESS demands`)
