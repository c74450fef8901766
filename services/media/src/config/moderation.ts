// Reports of visitors, and the operator's scanner.
import {
  boolean,
  httpUrl,
  integer,
  oneOf,
  parsed,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { isSecret } from '@services/common/webhooks/webhook-secret'

export const moderationVariables = {
  REPORTS: oneOf(['on', 'off'], '`off` removes the form by which visitors report a clip.', { default: 'on' }),
  REPORT_HIDE_AT: integer(
    'Client addresses whose open reports of this month hide a clip by themselves; never if unset. Needs RATE_LIMIT_HEADER.',
    { min: 1, max: 100 },
  ),
  SCAN_URL: httpUrl(
    'Address of a scanner that gets poster and three frames of each new clip. It may be in a private network.',
  ),
  SCAN_SECRET: parsed(
    'string',
    'Secret that signs the requests to the scanner: `whsec_` and base64 of 24 to 64 bytes. Required with SCAN_URL.',
    { secret: true },
    parseSecret,
  ),
  SCAN_REQUIRED: boolean(
    'Publish a clip only after the answer of the scanner; a clip without one for a day fails. Needs SCAN_URL.',
    { default: 'false' },
  ),
} satisfies Variables

type ModerationValues = Values<typeof moderationVariables>

/** The variable that SCAN_URL requires; `given` returns the text of a variable. */
export const requiredModeration = (
  given: (name: keyof typeof moderationVariables) => string | undefined,
): Partial<typeof moderationVariables> =>
  given('SCAN_URL') ? ({ SCAN_SECRET: { ...moderationVariables.SCAN_SECRET, required: true } } as object) : {}

export const moderationSettings = ({
  REPORT_HIDE_AT,
  SCAN_URL,
  SCAN_SECRET = '',
  SCAN_REQUIRED,
}: ModerationValues) => ({
  moderation: {
    hideAt: REPORT_HIDE_AT,
    scanner: SCAN_URL === undefined ? undefined : { url: SCAN_URL, secret: SCAN_SECRET, isRequired: SCAN_REQUIRED },
  },
})

export const moderationWarnings = (values: ModerationValues & { RATE_LIMIT_HEADER: string | undefined }): string[] => [
  ...(values.REPORT_HIDE_AT && !values.RATE_LIMIT_HEADER
    ? ['MEDIA_REPORT_HIDE_AT has no effect without MEDIA_RATE_LIMIT_HEADER']
    : []),
  ...(values.SCAN_REQUIRED && !values.SCAN_URL ? ['MEDIA_SCAN_REQUIRED has no effect without MEDIA_SCAN_URL'] : []),
]

function parseSecret(value: string): string {
  if (!isSecret(value)) throw new Error('must be whsec_ followed by base64 of 24 to 64 bytes')
  return value
}
