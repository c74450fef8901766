import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apiError, type ErrorCode } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import { type ManifestLimits, type Reading, refuseManifest } from './manifest.ts'

export interface ManifestText {
  kind: 'hls' | 'dash'
  text: string
  /** Where it came from, after redirects: what addresses in it are relative to. */
  url: string
}

export interface ReaderInput {
  sources: ManifestText[]
  limits: ManifestLimits
}

export type ReaderAnswer =
  | { readings: Reading[] }
  | { refusal: { code: string; details: Record<string, unknown> | undefined } }

const READER = fileURLToPath(new URL('./manifest-reader.ts', import.meta.url))
const INPUT = 'manifests.json'

/** An honest manifest takes a tenth of a second, most of it the start of Node, which reserves much more than it uses. */
const runLimits: RunLimits = { wallSeconds: 5, cpuSeconds: 2, memoryBytes: 8 * 1024 ** 3, fileBytes: 0 }
const HEAP_MIB = 128

/**
 * What the manifests say, found out by a process as confined as ffmpeg is. Throws unsupported_site_content
 * (`details.reason`), duration_exceeded.
 */
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
