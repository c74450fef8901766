import { runService } from '@services/common/process/run-service'
import { startUp, warnOfOpenSettings } from './start.ts'

await runService('AUTH_', startUp(), async (config, log) => {
  // Loaded by processes that serve: the first of several does not (AUTH_WEB_CONCURRENCY).
  const { serve } = await import('./serve.ts')
  warnOfOpenSettings(config, log)
  return serve(config, log)
})
