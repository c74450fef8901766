import { cpuSecondsOfAll } from './cpu.ts'
import { median } from './median.ts'
import type { startReport } from './report.ts'

const BOUND_SECONDS = 0.6
const STARTS = 5

/**
 * Adds a row: CPU of the service from the start of its process to its first answer, with that of the programs it runs.
 * The first start does not count: it compiles what the image has compiled.
 */
export async function startCpu(
  report: ReturnType<typeof startReport>,
  start: () => Promise<{ base: string; pid: number; stop(): Promise<unknown> }>,
): Promise<void> {
  const seconds: number[] = []
  for (let index = 0; index <= STARTS; index++) {
    const service = await start()
    await fetch(`${service.base}/health`)
    seconds.push(cpuSecondsOfAll(service.pid))
    await service.stop()
  }
  const row = {
    id: 'start-cpu',
    what: 'CPU from start to the first answer, in the image',
    unit: 's',
    goal: { atMost: 1 },
  }
  report.row({ ...row, against: 'the bound', ours: median(seconds.slice(1)), theirs: BOUND_SECONDS, compared: 'ratio' })
}
