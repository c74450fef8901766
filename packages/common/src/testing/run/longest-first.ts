import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Slow files that take half a minute or more: begun last, one of them would run alone at the end. */
const LONGEST = [
  'services/media/src/make/transcode/memory.slow.test.ts',
  'services/media/test/browser.slow.test.ts',
  'packages/common/src/dev/first-command.slow.test.ts',
  'services/media/src/make/transcode/make-renditions.slow.test.ts',
  'services/media/test/process.slow.test.ts',
  'services/media/test/pictures-and-tracks.slow.test.ts',
  'services/media/test/hostile/hostile.slow.test.ts',
  'services/media/test/held-pictures.slow.test.ts',
  'services/auth/test/enumeration.slow.test.ts',
  'services/auth/test/hostile-requests.slow.test.ts',
  'services/media/src/make/transcode/edits.slow.test.ts',
  'services/auth/test/closed-output.slow.test.ts',
  'services/auth/test/processes.slow.test.ts',
  'services/media/test/refused-bodies.slow.test.ts',
  'services/media/src/make/transcode/frame-patterns.slow.test.ts',
  'services/media/src/make/transcode/captions.slow.test.ts',
  'services/media/src/ingest/manifests/assemble-manifest.slow.test.ts',
  'services/media/test/source-types.slow.test.ts',
  'services/auth/test/browser.slow.test.ts',
  'services/media/test/element.slow.test.ts',
  'infra/bundle/bundle.slow.test.ts',
]

/**
 * Vitest's order, which is by project and then by size or by the last duration, but for the longest files. These are
 * first in their project, and their projects come first. Projects do not alternate: a worker that meets a file of
 * another project ends, and its successor loads the service anew.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((file) => !existsSync(join(this.ctx.config.root, file)))
    if (missing.length > 0) throw new Error(`longest-first.ts names files that do not exist: ${missing.join(', ')}`)
    const rankOf = ({ moduleId }: TestSpecification) => LONGEST.findIndex((file) => moduleId.endsWith(`/${file}`))
    const sorted = await super.sort(files)
    const longest = sorted.filter((file) => rankOf(file) >= 0).sort((a, b) => rankOf(a) - rankOf(b))
    const ordered = [...longest, ...sorted.filter((file) => rankOf(file) < 0)]
    return [...Map.groupBy(ordered, ({ project }) => project.name).values()].flat()
  }
}
