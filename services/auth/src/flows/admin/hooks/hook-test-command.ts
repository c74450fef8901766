import { randomBytes, randomUUID } from 'node:crypto'
import { ApiError } from '@services/common/errors'
import { CommandFailure, command, printResult, UsageError } from '@services/common/process/command-line'
import { describeTarget } from '../../../adapters/hooks/hook-uri.ts'
import { HOOK_NAMES, HOOK_POINTS, type HookPoint } from '../../../adapters/hooks/points.ts'
import { ALL_KINDS, isMailKind } from '../../../adapters/mail/kinds.ts'
import { createHooks } from '../../../core/hooks/hooks.ts'
import { type CommandDeps, onDatabase } from '../../../on-database.ts'
import { findNamedUser, USER_OPERAND } from '../users/user-commands.ts'
import { samplePayload } from './hook-samples.ts'

export const hookTest = command({
  name: 'hook test',
  summary: 'ask a hook a made-up question, and say what it answers or what is wrong',
  operands: ['POINT'],
  options: {
    user: { value: 'USER', meaning: 'ask about this user; ada@example.com, who does not exist, if absent' },
    kind: { value: 'KIND', meaning: 'mail that send-email is asked to send; confirmation if absent' },
  },
  details: `Points: ${HOOK_NAMES.join(', ')}
${USER_OPERAND}
Kinds: ${ALL_KINDS.join(', ')}
A receiver of send-email or send-sms sends the message to the user, with a code that confirms nothing.`,
  run: ({ options, operands: [name = ''], json }) => {
    const point = pointOf(name)
    const { kind = 'confirmation' } = options
    if (!isMailKind(kind)) throw new UsageError(`--kind must be one of ${ALL_KINDS.join(', ')}`)
    return onDatabase(
      async (deps) => {
        const user = options.user === undefined ? undefined : await findNamedUser(deps, options.user)
        const asked = await ask(deps, point, { user, kind })
        printResult(json, asked, describe(asked))
      },
      { changesNothing: true },
    )
  },
})

/** Accepts the name of the payload and that of the settings. */
function pointOf(name: string): HookPoint {
  const asSetting = name.toUpperCase().replaceAll('-', '_')
  const found = HOOK_NAMES.find((point) => point === name || HOOK_POINTS[point] === asSetting)
  if (!found) throw new UsageError(`there is no point "${name}", only ${HOOK_NAMES.join(', ')}`)
  return found
}

interface Asked {
  point: HookPoint
  uri: string
  milliseconds: number
  result: 'answered' | 'refused'
  answer?: object
  status?: number
  message?: string
}

/** Throws a CommandFailure where the hook does not answer as it should. */
async function ask(deps: CommandDeps, point: HookPoint, sample: Parameters<typeof samplePayload>[2]): Promise<Asked> {
  const settings = deps.config.hooks[point]
  if (!settings) throw new CommandFailure(`not asked: AUTH_HOOK_${HOOK_POINTS[point]}_ENABLED is not true`)
  const uri = describeTarget(settings.target)
  // A failure is shown, also of a hook that fails open.
  const config = { ...deps.config, hooks: { [point]: { ...settings, failsOpen: false } } }
  const hooks = createHooks({ ...deps, config, newId: randomUUID, random: randomBytes })
  const payload = await samplePayload(deps, point, sample)
  const begun = performance.now()
  const asked = () => ({ point, uri, milliseconds: Math.round(performance.now() - begun) })
  try {
    const answer = await hooks.ask(point, deps.log, payload)
    return { ...asked(), result: 'answered', answer }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const { code, status, message } = error
    if (code === 'hook_rejected') return { ...asked(), result: 'refused', status, message }
    throw new CommandFailure(`${uri} does not answer as it should: ${wordsOf(error)}\n${remedyFor(error)}`)
  } finally {
    await hooks.close()
  }
}

function describe({ point, uri, milliseconds, result, answer, status, message }: Asked): string {
  const to = `${point}, ${uri}, after ${milliseconds} ms`
  return result === 'refused'
    ? `refused with status ${status}: ${message}\n(${to}; callers get this text)`
    : `answered ${JSON.stringify(answer)}\n(${to})`
}

/** Only the operator reads the cause. */
function wordsOf({ message, cause }: ApiError): string {
  return cause instanceof Error && cause.message !== message ? `${message} (${cause.message})` : message
}

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [
    /requires authorization|answered 403/,
    'Does it check the signature with a secret of …_SECRETS, over the body as it came, before any parsing?',
  ],
  [
    /Invalid payload/,
    'It refuses the payload: most libraries answer 400 to a wrong signature, or where the body was parsed before the check.',
  ],
  [/Content-Type|content-type/, 'Answer JSON with Content-Type: application/json, or 204 without a body.'],
  [/unmarshaling/, 'Answer one JSON object: {} to agree, {"error": {"message": "…"}} to refuse.'],
  [
    /maximum time/,
    'Nothing answered in time: a firewall, work that could be done after the answer, or …_TIMEOUT is too short.',
  ],
  [/maximum retries/, 'Nothing can be reached there: check …_URI, that the receiver runs, and its certificate.'],
  [/size limit/, 'The answer holds more than 200 KiB; nothing but the members of this point is read.'],
  [/unavailable due to hook/, 'The receiver is busy: it answers 429 or 503.'],
  [/hook: 404/, 'The path of …_URI leads nowhere at this receiver.'],
  [/hook: 3\d\d/, 'Redirects are not followed: set …_URI to the address that answers.'],
  [
    /status code/,
    'Answer 200 with a JSON object, 202, or 204 without a body; a refusal may be a 4xx with {"error": {"message": "…"}}.',
  ],
  [
    /running hook/,
    'The function failed: does it exist with one argument of json or jsonb, and may the role of this service execute it?',
  ],
]

const remedyFor = ({ message, cause }: ApiError) =>
  REMEDIES.find(([pattern]) => pattern.test(`${message} ${cause instanceof Error ? cause.message : ''}`))?.[1] ??
  'See the log of the receiver.'
