import type { Command } from '@services/common/process/command-line'
import { problemsOf, serviceCommands } from '@services/common/process/service-commands'
import { variables } from './config.ts'
import { openDeps, SCHEMA } from './deps.ts'
import { resolveTools } from './ffmpeg/binaries.ts'
import { blobCommands } from './flows/check/blob-commands.ts'
import { scanCommands } from './flows/check/scan-command.ts'
import { clipCommands } from './flows/clips/clip-commands.ts'
import { variantCommands } from './flows/files/variants/variant-commands.ts'
import { auditCommands } from './flows/moderation/audit-commands.ts'
import { tokenCommands } from './flows/tokens/token-commands.ts'
import { requireYtdlp } from './ingest/ytdlp/check-ytdlp.ts'
import { startUp } from './start.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

/** Commands in the order of the help. */
export const commands: Command[] = [
  ...serviceCommands({
    name: 'media',
    prefix: 'MEDIA_',
    version: VERSION,
    variables,
    workerSummary: 'transcode and clean up in a process of its own',
    startUp,
    checkConfig: async ({ ffmpeg, ytdlp }) => {
      const checks = [() => resolveTools(ffmpeg), () => requireYtdlp(ytdlp)]
      return { problems: (await Promise.all(checks.map(problemsOf))).flat() }
    },
    serve: () => import('./main.ts'),
    schema: SCHEMA,
    startWorker: async (config, log) => {
      const alone = { enabled: true, processes: 1, concurrency: config.worker.concurrencyAlone }
      const deps = await openDeps({ ...config, worker: { ...config.worker, ...alone } }, log)
      return [await startWorker(deps), deps.close]
    },
  }),
  ...tokenCommands,
  ...clipCommands,
  ...blobCommands,
  ...scanCommands,
  ...variantCommands,
  ...auditCommands,
]
