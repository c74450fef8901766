// The `clips` commands. A decision is recorded like a moderator's, with the account of the machine. Tests:
// test/clip-commands.test.ts.
import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { isClipId } from '../../core/clips/clip-id.ts'
import { type Clip, type FoundClip, findClip } from '../../core/clips/clips.store.ts'
import { listFiles } from '../../core/clips/renditions.store.ts'
import { moderate } from '../../core/lifecycle/moderate.ts'
import { listClips } from '../../core/lists/clip-lists.store.ts'
import { listModerations, type Moderation } from '../../core/reports/moderations.store.ts'
import { cleanNote } from '../../core/reports/report-fields.ts'
import { viewsOf } from '../../core/views/find-views.ts'
import { REPORT_REASONS, SOURCE_STATES } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import { toDetails } from '../../http/clip-details.ts'
import { type CommandDeps, onDatabase } from '../../on-database.ts'

const MAX_LISTED = 1_000
const MAX_DECISIONS = 100

const clipsList = command({
  name: 'clips list',
  summary: 'list clips of all tokens, newest first',
  options: {
    token: { value: 'ID', meaning: 'only those of this token, or none for those added without one' },
    state: { value: 'STATE', meaning: SOURCE_STATES.join(', ') },
    limit: { value: 'N', meaning: `largest number, up to ${MAX_LISTED}; 50 if absent` },
  },
  run: async ({ options: { token, state: wanted, limit = '50' }, json }) => {
    if (!/^[1-9]\d*$/.test(limit) || Number(limit) > MAX_LISTED)
      throw new UsageError(`--limit must be a number from 1 to ${MAX_LISTED}`)
    const state = SOURCE_STATES.find((each) => each === wanted)
    if (wanted !== undefined && !state) throw new UsageError(`--state must be one of ${SOURCE_STATES.join(', ')}`)
    if (token !== undefined && token !== 'none' && !isUuid(token)) throw new UsageError(`no token of this id: ${token}`)
    await onDatabase(async ({ db, now, config }) => {
      const all = {
        tagKey: undefined,
        nsfw: undefined,
        visibility: undefined,
        from: undefined,
        to: undefined,
        now: now(),
      }
      const filter = { ...all, tokenId: token === 'none' ? null : token, state }
      const clips = await listClips(db, filter, { after: undefined, order: 'desc', limit: Number(limit) })
      const ids = clips.map(({ id }) => id)
      const views = await viewsOf({ config, now }, db, ids)
      const shown = clips.map(({ files, ...clip }) => toDetails(clip, files, config.site, views.get(clip.id)))
      if (json || clips.length > 0) printResult(json, shown, clips.map(toLine).join('\n'))
    })
  },
})

const clipsShow = command({
  name: 'clips show',
  summary: 'show a clip with its files and the decisions about it',
  operands: ['ID'],
  run: ({ operands: [id = ''], json }) =>
    onDatabase(async (deps) => {
      const clip = await requireClip(deps, id)
      const decisions = await listModerations(deps.db, id, MAX_DECISIONS)
      const isThere = clip.state !== 'deleted'
      const files = isThere && clip.isShowable ? await listFiles(deps.db, clip.sourceId) : []
      const views = await viewsOf(deps, deps.db, [id])
      const details = isThere ? toDetails(clip, files, deps.config.site, views.get(id)) : { id, state: clip.state }
      const members = Object.entries(details).map(([name, value]) => row(name, value))
      const text = [...members, ...decisions.map((each) => row('decision', describe(each)))].join('\n')
      printResult(json, { ...details, decisions }, text)
    }),
})

const NOTE = { value: 'TEXT', meaning: 'kept with the decision' }

const clipsHide = command({
  name: 'clips hide',
  summary: 'take a clip down, so that only its owner sees its details',
  operands: ['ID'],
  options: { reason: { value: 'REASON', meaning: `${REPORT_REASONS.join(', ')}; other if absent` }, note: NOTE },
  run: ({ operands: [id = ''], options: { reason: given, note }, json }) => {
    const reason = REPORT_REASONS.find((each) => each === given)
    if (given !== undefined && !reason) throw new UsageError(`--reason must be one of ${REPORT_REASONS.join(', ')}`)
    return decide(json, id, { action: 'hide', reason, note })
  },
})

const clipsUnhide = command({
  name: 'clips unhide',
  summary: 'show a hidden clip again',
  operands: ['ID'],
  options: { note: NOTE },
  run: ({ operands: [id = ''], options: { note }, json }) => decide(json, id, { action: 'unhide', note }),
})

const clipsDelete = command({
  name: 'clips delete',
  summary: 'delete a clip; its addresses answer 410',
  operands: ['ID'],
  options: { note: NOTE, yes: { meaning: 'required: a deleted clip cannot be restored' } },
  run: ({ operands: [id = ''], options: { note, yes }, json }) => {
    if (!yes) throw new UsageError('needs --yes: a deleted clip cannot be restored')
    return decide(json, id, { action: 'delete', note })
  },
})

export const clipCommands = [clipsList, clipsShow, clipsHide, clipsUnhide, clipsDelete]

const DONE = { hide: 'is hidden', unhide: 'is not hidden', delete: 'is deleted' }

interface Wanted {
  action: keyof typeof DONE
  reason?: (typeof REPORT_REASONS)[number] | undefined
  note: string | undefined
}

const decide = (json: boolean, id: string, { action, reason, note }: Wanted): Promise<void> =>
  onDatabase(async (deps) => {
    await requireClip(deps, id)
    const by = { origin: 'cli', tokenId: null, operator: deps.operator } as const
    await moderate(deps, { clipId: id }, { action, reason, note: cleanNote(note), ...by })
    printResult(json, { id, action }, `${id} ${DONE[action]}`)
  })

async function requireClip({ db, now }: CommandDeps, id: string): Promise<FoundClip> {
  const clip = isClipId(id) ? await findClip(db, id, now()) : undefined
  if (!clip) throw new CommandFailure(`there is no such clip: ${id}`)
  return clip
}

/** Replaces control characters: a title must not move the terminal's cursor. */
const printable = (text: string) => text.replaceAll(/\p{Cc}/gu, '?')

const NAME_WIDTH = 14

function row(name: string, value: unknown): string {
  const text = value instanceof Date ? value.toISOString() : typeof value === 'string' ? value : JSON.stringify(value)
  return name.padEnd(NAME_WIDTH) + printable(text)
}

const describe = ({ action, origin, reason, note, created_at: at, operator, token_id: token }: Moderation) =>
  [at.toISOString(), action, origin, operator ?? token ?? '', reason ?? '', note ?? ''].filter(Boolean).join('  ')

/** Width of the longest state. */
const STATE_WIDTH = 10

function toLine({ id, createdAt, state, hiddenAt, bytes, tokenId, title }: Clip): string {
  const shown = (hiddenAt ? 'hidden' : state).padEnd(STATE_WIDTH)
  const cells = [id, createdAt.toISOString(), shown, `${bytes} bytes`, tokenId ?? 'no token', title ?? '']
  return printable(cells.join('  ').trimEnd())
}
