import { duration, httpUrl, parsed, type Values, type Variables } from '@services/common/config/variables'
import { isSecret } from '@services/common/webhooks/webhook-secret'
import { parseWanted } from '../../core/webhooks/events.ts'

export const webhookVariables = {
  WEBHOOK_URL: httpUrl(
    'Receiver of events, beside those of the admin API. It is https, on a public server or in EGRESS_ALLOW_CIDRS.',
  ),
  WEBHOOK_SECRET: parsed(
    'list',
    'Secret that signs the events for WEBHOOK_URL (Standard Webhooks): `whsec_` and base64 of 24 to 64 bytes. With two, separated by `|`, both sign.',
    { secret: true },
    parseSecrets,
  ),
  WEBHOOK_EVENTS: parsed(
    'list',
    'Events for WEBHOOK_URL: `*`, groups such as `user.*`, or names.',
    { default: '*' },
    (value) => parseWanted(namesIn(value)),
  ),
  WEBHOOK_RETENTION: duration('Retention of delivered and failed events, for their log and for replays.', {
    default: '7d',
    positive: true,
  }),
} satisfies Variables

const namesIn = (value: string) =>
  value
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean)

function parseSecrets(value: string): string[] {
  const secrets = value
    .split('|')
    .map((secret) => secret.trim())
    .filter(Boolean)
  if (secrets.length === 0 || secrets.length > 2 || !secrets.every(isSecret)) {
    throw new Error('must be whsec_ followed by base64 of 24 to 64 bytes, or two of these separated by |')
  }
  return secrets
}

type Settings = Values<typeof webhookVariables>

export const webhookSettings = (values: Settings) => ({
  receiver:
    values.WEBHOOK_URL === undefined
      ? undefined
      : { url: values.WEBHOOK_URL, secrets: values.WEBHOOK_SECRET ?? [], events: values.WEBHOOK_EVENTS },
  keepSeconds: values.WEBHOOK_RETENTION,
})

/** Anyone could send unsigned events. */
export const webhookProblems = ({ WEBHOOK_URL: url, WEBHOOK_SECRET: secrets }: Settings): string[] =>
  url !== undefined && secrets === undefined ? ['AUTH_WEBHOOK_URL needs AUTH_WEBHOOK_SECRET'] : []
