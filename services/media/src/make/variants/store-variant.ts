// Makes a claimed variant and stores it. A variant exists once its claim is settled. A killed build leaves only a
// claim, which the next request or housekeeping takes over. Tests: test/variants.test.ts.
import { join } from 'node:path'
import { findRenditions } from '../../core/clips/renditions.store.ts'
import { isStill, sizeOfVariant, VARIANT_TYPES, type Variant } from '../../core/variants/variant.ts'
import { type Claim, settleVariant } from '../../core/variants/variants.store.ts'
import { type MediaInfo, mayHaveAlpha } from '../../db/media-info.ts'
import type { RenditionKind, VariantState } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countVariant } from '../../metrics.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'
import { workFiles } from '../command/work-files.ts'
import type { VariantMade } from './variant-work.ts'

type Files = Awaited<ReturnType<typeof findRenditions>>

/** Throws when it cannot be made; the claim stays. */
export async function makeVariant(
  deps: Deps,
  claim: Claim,
  { info, variant, signal }: { info: MediaInfo; variant: Variant; signal: AbortSignal },
): Promise<void> {
  const files = await findRenditions(deps.db, claim.sourceId)
  const original = files[VARIANT_TYPES[variant.ending].original]
  if (!original) throw new Error('the file that the variant is made of is missing')
  await using directory = await deps.work.newDirectory()
  await fetchFiles(deps, inputsOf(variant, info, files), directory.path, signal)
  const work = { tools: deps.tools, workDirectory: directory.path, info, signal }
  const requested = sizeOfVariant(variant, original) ?? { width: original.width, height: original.height }
  // Animations are made of the mp4, which is smaller than a large GIF that was kept.
  const { width, height } = isStill(variant) ? original : (files.mp4 ?? original)
  const size = sizeOfVariant({ ending: variant.ending, width, height, fit: 'inside' }, requested) ?? requested
  const picture = { ...size, crops: variant.fit === 'cover' }
  const made = isStill(variant) ? await still(work, variant, picture) : await animated(work, variant, picture, original)
  await settle(deps, claim, variant, isSuperfluous(variant, made, original.bytes) ? 'original' : made)
}

// Loaded with the first variant: the image library takes a tenth of an idle service's memory.
const still = async (...[work, variant, picture]: Parameters<typeof import('./make-still.ts').makeStill>) => ({
  file: await (await import('./make-still.ts')).makeStill(work, variant, picture),
})
const animated = async (...args: Parameters<typeof import('./make-animated.ts').makeAnimated>) =>
  (await import('./make-animated.ts')).makeAnimated(...args)

/** A smaller picture with more bytes has no use: its address redirects to the clip's file. */
function isSuperfluous({ fit, atSeconds, maxBytes }: Variant, made: VariantMade, originalBytes: number): boolean {
  const isPlain = fit === 'inside' && atSeconds === undefined && maxBytes === undefined
  return isPlain && 'file' in made && made.file.bytes >= originalBytes
}

function inputsOf(variant: Variant, info: MediaInfo, files: Files): { kind: RenditionKind; sha256: string }[] {
  const named = (kind: RenditionKind) => (files[kind] ? [{ kind, sha256: files[kind].sha256 }] : [])
  if (isStill(variant)) return named(variant.atSeconds === undefined ? 'jpg' : 'mp4')
  return [...named('mp4'), ...(mayHaveAlpha(info) && variant.ending !== 'mp4' ? named('webm') : [])]
}

async function fetchFiles(
  { blobs }: Deps,
  inputs: { kind: RenditionKind; sha256: string }[],
  directory: string,
  signal: AbortSignal,
): Promise<void> {
  for (const { kind, sha256 } of inputs) {
    const isCopied = await blobs.copyTo({ sha256, extension: kind }, join(directory, workFiles[kind]), signal)
    if (!isCopied) throw new Error(`the ${kind} that the variant is made of is not in the store`)
  }
}

/** Without a claim the file has no reference, and housekeeping deletes it. */
async function settle(deps: Deps, claim: Claim, variant: Variant, made: VariantMade | 'original'): Promise<void> {
  const { ending } = variant
  const { extension } = VARIANT_TYPES[ending]
  const file = made !== 'original' && 'file' in made ? made.file : undefined
  const smallest = made !== 'original' && 'smallest' in made ? made.smallest : 0
  const state: Exclude<VariantState, 'making'> = file ? 'stored' : made === 'original' ? 'original' : 'refused'
  const outcome = { state, bytes: file?.bytes ?? smallest, sha256: file?.sha256 ?? null }
  const kept = file ? [{ name: { sha256: file.sha256, extension }, path: file.path, bytes: file.bytes }] : []
  await keepFiles(deps, kept, async (trx) => {
    const isSettled = await settleVariant(trx, claim, outcome)
    return { references: isSettled ? kept.map(({ name }) => name) : [], result: undefined }
  })
  countVariant(ending, state)
}
