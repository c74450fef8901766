// The `messages` commands. Listing and sending again: messages.routes.ts.
import { command, printResult, UsageError } from '@services/common/process/command-line'
import {
  listMessages,
  MESSAGE_CHANNELS,
  MESSAGE_STATES,
  type VisibleMessage,
} from '../../../core/outbox/messages.store.ts'
import { UUID } from '../../../db/uuid.ts'
import { onDatabase, onOutbox } from '../../../on-database.ts'
import { parseMessageFilter } from './message-filter.ts'
import { noSuchMessage, resendFailedMessage } from './resend-failed-message.ts'

const MAX_LISTED = 10_000

export const messagesList = command({
  name: 'messages list',
  summary: 'list mails and SMS with their state, newest first',
  options: {
    state: { value: 'STATE', meaning: MESSAGE_STATES.join(', ') },
    channel: { value: 'CHANNEL', meaning: MESSAGE_CHANNELS.join(', ') },
    kind: { value: 'KIND', meaning: 'such as confirmation or recovery' },
    user: { value: 'UUID', meaning: 'id of the user they are for' },
    limit: { value: 'N', meaning: `largest number, up to ${MAX_LISTED}; 50 if absent` },
  },
  details: 'Neither address nor content is shown. Sent messages are kept for AUTH_MESSAGES_KEEP, failed ones 30 days.',
  run: async ({ options: { state, channel, kind, user, limit = '50' }, json }) => {
    if (!/^[1-9]\d*$/.test(limit) || Number(limit) > MAX_LISTED)
      throw new UsageError(`--limit must be a number from 1 to ${MAX_LISTED}`)
    if (user && !UUID.test(user)) throw new UsageError('--user must be the id of a user')
    const filter = parseMessageFilter(
      { state, channel },
      (member, names) => new UsageError(`--${member} must be one of ${names.join(', ')}`),
    )
    await onDatabase(async ({ db }) => {
      const page = { limit: Number(limit), offset: 0 }
      const { rows } = await listMessages(db, { ...filter, kind, userIds: user ? [user] : undefined }, page)
      if (json || rows.length > 0) printResult(json, rows, rows.map(toLine).join('\n'))
    })
  },
})

export const messagesRetry = command({
  name: 'messages retry',
  summary: 'send a failed message again',
  operands: ['ID'],
  details: 'ID is that of messages list. A worker of the service sends it.',
  run: ({ operands: [id = ''], json }) =>
    onOutbox(async (deps) => {
      if (!UUID.test(id)) throw noSuchMessage()
      const message = await resendFailedMessage(deps, deps.log, deps.operator, id)
      printResult(json, message, `${message.id} (${message.channel} ${message.kind}) is queued`)
    }),
})

/** Widths of the longest states and kinds. */
function toLine(message: VisibleMessage): string {
  const { id, created_at: at, state, channel, kind, attempts, user_id: user, last_error: error } = message
  const what = `${channel} ${kind}`
  const cells = [
    id,
    at.toISOString(),
    state.padEnd(7),
    what.padEnd(22),
    `${attempts} attempts`,
    user ?? '-',
    error ?? '',
  ]
  return cells.join('  ').trimEnd()
}
