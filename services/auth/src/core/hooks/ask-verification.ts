import type { AuditLog } from '../audit/audit.ts'
import type { Hooks } from './hooks.ts'
import type { HookAnswers, HookPayloads } from './payloads.ts'

type VerificationPoint = 'password-verification' | 'mfa-verification'

export interface VerificationDeps {
  hooks: Pick<Hooks, 'has' | 'ask'>
  config: { hooks: Partial<Record<VerificationPoint, { failsOpen: boolean }>> }
}

/**
 * Shows an attempt to its hook and returns the answer if that rejects it. A hook that gives no answer rejects, by its
 * error, unless it fails open; one that refuses by `error` has given an answer.
 */
export async function askVerification<Point extends VerificationPoint>(
  { hooks, config }: VerificationDeps,
  point: Point,
  log: AuditLog,
  payload: HookPayloads[Point],
): Promise<HookAnswers[Point] | undefined> {
  if (!hooks.has(point)) return undefined
  try {
    const answer = await hooks.ask(point, log, payload)
    return answer.decision === 'reject' ? answer : undefined
  } catch (error) {
    const isAnswer = (error as { code?: unknown }).code === 'hook_rejected'
    if (isAnswer || !config.hooks[point]?.failsOpen) throw error
    log.warn({ hook: point }, 'attempt not shown to its hook: it fails open')
    return undefined
  }
}
