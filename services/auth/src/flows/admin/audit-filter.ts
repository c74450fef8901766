// The query that selects audit entries, of the list and of the export.
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { withAsciiDomain } from '../../adapters/mail/email-address.ts'
import type { AuditFilter } from '../../core/audit/list-audit.store.ts'
import type { AuditSearch } from '../../core/audit/search-audit.store.ts'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { readTime } from '../../http/bodies/read-time.ts'

const MAX_TEXT_LENGTH = 255

const TimeField = (description: string) =>
  Type.Optional(Type.String({ description, ...inDocument({ format: 'date-time' }) }))

export const AuditQuery = {
  query: Type.Optional(
    Type.String({
      description:
        'Part of an author, action or type: `author:…`, `action:…` or `type:…`, in any case. `user:` and an id finds entries by and on this user. Among more than 50,000 entries an author is up to 100 users whose present address or name contains the text. It also stands for exactly that address or role. More users are 400.',
    }),
  ),
  from: TimeField('First time: a date, or a time with its zone.'),
  before: TimeField('First time that is left out.'),
}

/** Throws validation_failed. */
export const parseFilter = (query: { query?: string; from?: string; before?: string }): AuditFilter => ({
  search: parseSearch(query.query),
  from: parseTime('from', query.from),
  before: parseTime('before', query.before),
})

function parseTime(member: string, text: string | undefined): Date | undefined {
  if (!text) return undefined
  const time = readTime(text)
  if (!time) throw apiError('validation_failed', { message: `${member} must be a date or a time with its zone` })
  return time
}

function parseSearch(query: string | undefined): AuditSearch | undefined {
  if (!query) return undefined
  const [, scope, text = ''] = /^(author|action|type|user):(.*)$/s.exec(query) ?? []
  if (!scope || text.length > MAX_TEXT_LENGTH || text.includes('\0')) {
    throw apiError('validation_failed', { message: 'query must be author:…, action:…, type:… or user:…' })
  }
  if (scope === 'user') {
    if (!UUID.test(text)) throw apiError('validation_failed', { message: 'user:… must have the id of a user' })
    return { scope, text: text.toLowerCase() }
  }
  return text === '' ? undefined : { scope: scope as AuditSearch['scope'], text: withAsciiDomain(text) }
}
