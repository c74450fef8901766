import type { Command } from '@services/common/process/command-line'
import { serviceCommands } from '@services/common/process/service-commands'
import { settingsToReview } from './config/review.ts'
import { variables } from './config.ts'
import { openDeps, SCHEMA } from './deps.ts'
import { hookTest } from './flows/admin/hooks/hook-test-command.ts'
import { messagesList, messagesRetry } from './flows/admin/messages/message-commands.ts'
import { adminCreate } from './flows/admin/users/create-admin-command.ts'
import { usersList } from './flows/admin/users/list-users-command.ts'
import { usersShow } from './flows/admin/users/show-user-command.ts'
import {
  usersBan,
  usersConfirm,
  usersCreate,
  usersDelete,
  usersRemoveFactor,
  usersSetEmail,
  usersSetPassword,
  usersSetRole,
  usersSignOut,
  usersUnban,
} from './flows/admin/users/user-commands.ts'
import { webhooksReplay } from './flows/admin/webhooks/webhook-commands.ts'
import { tokensAdmin } from './flows/commands/admin-token-command.ts'
import { checkConfig } from './flows/commands/check-config.ts'
import { encryptionRotate, encryptionStatus } from './flows/commands/encryption/encryption-commands.ts'
import { auditExport } from './flows/commands/export-audit-command.ts'
import { keysGenerate } from './flows/commands/keys-command.ts'
import { mailPreview, mailTest } from './flows/commands/mail-commands.ts'
import { redirectCheck } from './flows/commands/redirect-command.ts'
import { usersExport, usersImport } from './flows/import/import-commands.ts'
import { startUp } from './start.ts'
import { VERSION } from './version.ts'
import { startWorker } from './worker.ts'

/** Commands in the order of the help. */
export const commands: Command[] = [
  ...serviceCommands({
    name: 'auth',
    prefix: 'AUTH_',
    version: VERSION,
    variables,
    workerSummary: 'deliver mail and do housekeeping in a separate process',
    startUp,
    serve: () => import('./main.ts'),
    checkConfig,
    review: settingsToReview,
    schema: SCHEMA,
    startWorker: async (config, log) => {
      const deps = await openDeps({ ...config, server: { ...config.server, workersEnabled: true } }, log)
      return [deps.sealedRows.start(), await startWorker(deps), deps.close]
    },
  }),
  keysGenerate,
  encryptionStatus,
  encryptionRotate,
  adminCreate,
  tokensAdmin,
  usersCreate,
  usersList,
  usersShow,
  usersBan,
  usersUnban,
  usersSetPassword,
  usersSetRole,
  usersConfirm,
  usersSetEmail,
  usersSignOut,
  usersRemoveFactor,
  usersDelete,
  usersImport,
  usersExport,
  auditExport,
  messagesList,
  messagesRetry,
  webhooksReplay,
  mailPreview,
  mailTest,
  hookTest,
  redirectCheck,
]
