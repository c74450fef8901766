import { runProcesses } from '@services/common/cluster'
import { explainListenError } from '@services/common/listen-error'
import { stopOnSignal } from '@services/common/shutdown'
import { serve } from './serve.ts'
import { startUp } from './start.ts'

const { config, log } = startUp()

await runProcesses(config.server.processes, log, async () => {
  try {
    const service = await serve(config, log)
    stopOnSignal(log, service.stop)
  } catch (error) {
    log.fatal({ err: error }, explainListenError(error, 'AUTH_PORT') ?? 'could not start')
    log.flush(() => process.exit(1))
  }
})
