import type { Logger } from 'pino'
import { runProcesses } from './cluster.ts'
import { stopOnSignal } from './shutdown.ts'
import { explainStartFailure, failureCode } from './start-failure.ts'

/** The body of every main.ts: serves from as many processes as the settings say, until a signal; or says why it cannot. */
export async function runService<Config extends { server: { processes: number } }>(
  { config, log }: { config: Config; log: Logger },
  serve: (config: Config, log: Logger) => Promise<{ stop(): Promise<void> }>,
  portVariables: (config: Config) => Record<number, string>,
): Promise<void> {
  await runProcesses(config.server.processes, log, async () => {
    try {
      const service = await serve(config, log)
      stopOnSignal(log, service.stop)
      return true
    } catch (error) {
      log.fatal({ err: error }, explainStartFailure(error, portVariables(config)) ?? 'could not start')
      log.flush(() => process.exit(failureCode(error)))
      return false
    }
  })
}
