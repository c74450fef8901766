export interface TestFile {
  path: string
  isSlow: boolean
}

/** Tests that need the services of the guides, or minutes, are not repeated. */
const LEFT_OUT = /^docs\/|\/faults\//

/** Files that run together: a run costs two seconds more than its tests. */
const BATCH = 3

/**
 * Lists changed test files in the order in which they are repeated: the fast tier before the slow one, and the newest
 * change first. `log` is the output of `git log --format=%x00 --name-only`, `changed` that of `git diff --name-only`.
 */
export function changedTests(log: string, changed: string): TestFile[] {
  const isChanged = new Set(changed.split('\n'))
  const newestFirst = new Set(log.replaceAll('\0', '').split('\n'))
  const paths = [...newestFirst].filter(
    (path) => isChanged.has(path) && path.endsWith('.test.ts') && !LEFT_OUT.test(path),
  )
  const files = paths.map((path) => ({ path, isSlow: path.endsWith('.slow.test.ts') }))
  return files.toSorted((one, other) => Number(one.isSlow) - Number(other.isSlow))
}

/** Picks the files of the next batch: all of one tier. */
export function batchOf(files: readonly TestFile[]): TestFile[] {
  return files.slice(0, BATCH).filter(({ isSlow }) => isSlow === files[0]?.isSlow)
}
