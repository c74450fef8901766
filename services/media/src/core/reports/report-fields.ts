// The fields of a report and of a decision, cleaned. A report holds no address; its reporter is an HMAC whose key is
// deleted when the month has ended (reporter.ts).
import { REPORT_REASONS, type ReportReason } from '../../db/tables.ts'
import { invalidField, plainText } from '../clips/clip-fields.ts'

export interface ReportFields {
  reason: ReportReason
  text: string | null
  email: string | null
}

export const MAX_TEXT = 1_000
/** RFC 5321 4.5.3.1.3. */
const MAX_EMAIL = 254
const MAX_NOTE = 1_000

/** Throws invalid_field. Empty fields count as absent. */
export function cleanReport(raw: Partial<Record<keyof ReportFields, string>>): ReportFields {
  const reason = REPORT_REASONS.find((known) => known === raw.reason?.trim().toLowerCase())
  if (!reason) throw invalidField('reason', `must be one of ${REPORT_REASONS.join(', ')}`)
  const email = plainText('email', raw.email ?? '', MAX_EMAIL)
  if (email && !/^[^\s@<>"]+@[^\s@<>"]+$/.test(email)) throw invalidField('email', 'must be an e-mail address')
  return { reason, text: plainText('text', raw.text ?? '', MAX_TEXT), email }
}

/** Throws invalid_field. */
export const cleanNote = (note: string | null | undefined): string | null => plainText('note', note ?? '', MAX_NOTE)
