import { runService } from '@services/common/process/run-service'
import { startUp } from './start.ts'

// Loaded by processes that serve: the first of several does not (MEDIA_WEB_CONCURRENCY).
const serve = async (...args: Parameters<typeof import('./serve.ts').serve>) =>
  (await import('./serve.ts')).serve(...args)

await runService('MEDIA_', startUp(), serve)
