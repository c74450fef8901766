import { runService } from '@services/common/run-service'
import { serve } from './serve.ts'
import { portVariables, startUp, warnOfOpenSettings } from './start.ts'

await runService(
  startUp(),
  (config, log) => {
    warnOfOpenSettings(config, log)
    return serve(config, log)
  },
  portVariables,
)
