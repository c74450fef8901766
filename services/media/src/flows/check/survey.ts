import { type CheckDeps, checkBlobs, type Finding } from './check-blobs.ts'

/** Most findings that are listed; all are counted. */
const MAX_LISTED = 1_000

type Counts = Partial<Record<Finding['kind'], number>>

export type Survey = Awaited<ReturnType<typeof survey>>

/** Checks all files, and counts the findings. */
export async function survey(
  deps: CheckDeps,
  options: { deep: boolean; fix: boolean; signal?: AbortSignal },
  onFinding: (finding: Finding) => void = () => {},
) {
  const found: Counts = {}
  const fixed: Counts = {}
  /** The first MAX_LISTED. */
  const findings: Finding[] = []
  /** Number of findings that were not fixed. */
  let left = 0
  const report = (finding: Finding) => {
    found[finding.kind] = (found[finding.kind] ?? 0) + 1
    if (finding.fixed) fixed[finding.kind] = (fixed[finding.kind] ?? 0) + 1
    else left++
    if (findings.length < MAX_LISTED) findings.push(finding)
    onFinding(finding)
  }
  const totals = await checkBlobs(deps, { ...options, report })
  return { ...totals, found, fixed, findings, left }
}
