import { runService } from '@services/common/run-service'
import { serve } from './serve.ts'
import { portVariables, startUp, warnOfMissingLimits } from './start.ts'

await runService(
  startUp(),
  (config, log) => {
    warnOfMissingLimits(config, log)
    return serve(config, log)
  },
  portVariables,
)
