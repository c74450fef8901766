// The service as its image runs it, from its bundle (infra/bundle): CPU of a start, and memory when idle. Part of
// `pnpm bench`.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { startReport } from '@services/common/bench/report'
import { startCpu } from '@services/common/bench/start-cpu'
import { bundle } from '../../../infra/bundle/bundle.ts'
import { startService } from './service.ts'

/** Time in which a start has freed what it needed. */
const SETTLE_MS = 5_000
const IDLE_MIB = 100

export async function measureImage(
  report: ReturnType<typeof startReport>,
  databaseUrl: string,
  directory: string,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-image-'))
  const start = () => startService(databaseUrl, directory, { bundle: folder })
  try {
    await bundle('media', folder)
    await startCpu(report, start)
    const service = await start()
    await sleep(SETTLE_MS)
    const ours = (await service.memory()).now / 1024 ** 2
    const row = { id: 'memory-idle', what: 'memory when idle, in the image', unit: 'MiB', goal: { atMost: 1 } }
    report.row({ ...row, against: 'the bound', ours, theirs: IDLE_MIB, compared: 'ratio' })
    await service.stop()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
