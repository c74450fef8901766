import { PermanentFailure } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../delivery-failures.ts'

/** Members of nodemailer's errors. */
export interface SmtpError {
  code?: string
  command?: string
  responseCode?: number
  response?: string
  syscall?: string
  timeoutType?: string
}

/** Timeout of a server that greeted and then fell silent; a server that is down has others. */
const FELL_SILENT = 'SOCKET_TIMEOUT'

const DEFERRED = [
  [/^RCPT/, 'recipient'],
  [/^MAIL/, 'sender'],
  [/^DATA/, 'message'],
] as const

/**
 * Turns an SMTP error into one that may be logged and shown: servers quote the recipient in their answers. RFC 5321
 * 4.2.1: 5yz is permanent; at RCPT and DATA it concerns this recipient or message, not the connection.
 */
export function toFailure(error: unknown): Error {
  const { command, responseCode, timeoutType } = error as SmtpError
  const words = explainSmtpError(error as SmtpError)
  if (timeoutType === FELL_SILENT) return new TemporaryFailure(words, { upstream: 'silent' })
  const isAnswer = responseCode !== undefined && /^(RCPT|DATA)/.test(command ?? '')
  if (!isAnswer) return new TemporaryFailure(words)
  return responseCode >= 500 ? new PermanentFailure(words) : new TemporaryFailure(words, { upstream: 'answered' })
}

/** RFC 5321 4.2.1: 4yz means that the same mail may be accepted later. */
export const isTemporary = ({ responseCode = 0 }: SmtpError): boolean => responseCode >= 400 && responseCode < 500

/** Describes a failure without quoting the server, except its status code. */
export function explainSmtpError(error: SmtpError): string {
  const { code, command = '', responseCode, syscall } = error
  const answer = responseCode ? ` (${responseCode})` : ''
  if (isTemporary(error)) {
    const [, what] = DEFERRED.find(([at]) => at.test(command)) ?? []
    return `mail server: it ${what ? `deferred the ${what}` : 'cannot serve us now'}${answer}`
  }
  if (code === 'EAUTH') return `mail server: it refused the user name or password${answer}`
  if (code === 'ENOAUTH') return 'mail server: it wants a user name and password'
  if (code === 'ETLS' || command === 'STARTTLS') return `mail server: TLS failed${answer}`
  if (code === 'EDNS') return 'mail server: its name cannot be resolved'
  if (/^RCPT/.test(command) && responseCode) return `mail server: it refused the recipient${answer}`
  if (/^MAIL/.test(command) && responseCode) return `mail server: it refused the sender${answer}`
  if (/^DATA/.test(command) && responseCode) return `mail server: it refused the message${answer}`
  if (responseCode) return `mail server: it answered ${responseCode}`
  if (code === 'ETIMEDOUT') return 'mail server: it does not answer in time'
  if (syscall === 'connect') return 'mail server: it cannot be reached'
  if (code === 'ESOCKET' && !syscall) return 'mail server: TLS failed'
  return `mail server: the connection failed or broke${code ? ` (${code})` : ''}`
}
