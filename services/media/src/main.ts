import { runProcesses } from '@services/common/cluster'
import { stopOnSignal } from '@services/common/shutdown'
import { explainStartFailure } from '@services/common/start-failure'
import { serve } from './serve.ts'
import { portVariables, startUp } from './start.ts'

const { config, log } = startUp()

await runProcesses(config.server.processes, log, async () => {
  try {
    const service = await serve(config, log)
    stopOnSignal(log, service.stop)
    return true
  } catch (error) {
    log.fatal({ err: error }, explainStartFailure(error, portVariables(config)) ?? 'could not start')
    log.flush(() => process.exit(1))
    return false
  }
})
