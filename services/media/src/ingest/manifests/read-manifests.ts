import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { moduleBeside } from '@services/common/process/sibling-module'
import { apiError, type ErrorCode } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import { type ManifestLimits, type Reading, refuseManifest } from './manifest.ts'

export interface ManifestText {
  kind: 'hls' | 'dash'
  text: string
  /** Final address after redirects; the base of addresses in the text. */
  url: string
}

export interface ReaderInput {
  sources: ManifestText[]
  limits: ManifestLimits
}

export type ReaderAnswer =
  | { readings: Reading[] }
  | { refusal: { code: string; details: Record<string, unknown> | undefined } }

const READER = moduleBeside(import.meta, 'manifest-reader')
const INPUT = 'manifests.json'

/** An honest manifest takes 0.1 s, mostly the start of Node, which reserves far more memory than it uses. */
const runLimits: RunLimits = { wallSeconds: 5, cpuSeconds: 2, memoryBytes: 8 * 1024 ** 3, fileBytes: 0 }
const HEAP_MIB = 128

/** Reads manifests, confined like ffmpeg. Throws unsupported_site_content (`details.reason`) and duration_exceeded. */
export async function readManifests(
  { tools }: { tools: MediaTools },
  sources: ManifestText[],
  { directory, limits, signal }: { directory: string; limits: ManifestLimits; signal: AbortSignal },
): Promise<Reading[]> {
  await writeFile(join(directory, INPUT), JSON.stringify({ sources, limits } satisfies ReaderInput))
  const args = [`--max-old-space-size=${HEAP_MIB}`, '--disable-warning=ExperimentalWarning', READER, INPUT]
  const outcome = await runConfined(process.execPath, args, {
    ...{ limits: runLimits, limiters: tools.limiters, cwd: directory, signal },
  })
  if (outcome.state !== 'done') throw refuseManifest('unreadable', outcome)
  const answer = JSON.parse(outcome.stdout) as ReaderAnswer
  if ('readings' in answer) return answer.readings
  const { code, details } = answer.refusal
  throw apiError(code as ErrorCode, { details })
}
