// The screens of the console, in the order of the menu. A screen that is not in this list does not exist.
import { audit } from './screens/audit.js'
import { hooks } from './screens/hooks.js'
import { keys } from './screens/keys.js'
import { mailTemplate, mailTemplates } from './screens/mail-templates.js'
import { messages } from './screens/messages.js'
import { clients } from './screens/oauth/clients.js'
import { oneClient } from './screens/oauth/one-client.js'
import { scopes } from './screens/oauth/scopes.js'
import { overview } from './screens/overview.js'
import { oneProvider } from './screens/providers/one-provider.js'
import { providers } from './screens/providers/providers.js'
import { settings } from './screens/settings.js'
import { oneUser } from './screens/users/one-user.js'
import { users } from './screens/users/users.js'
import { oneWebhook } from './screens/webhooks/one-webhook.js'
import { webhooks } from './screens/webhooks/webhooks.js'

/** @type {readonly import('./page.js').Screen[]} */
export const screens = [
  ...[users, oneUser],
  ...[messages, audit, overview],
  ...[providers, oneProvider],
  ...[clients, oneClient, scopes],
  ...[webhooks, oneWebhook],
  ...[hooks, mailTemplates, mailTemplate],
  ...[settings, keys],
]
