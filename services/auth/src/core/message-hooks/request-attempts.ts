import { openMailTemplates } from '../../adapters/mail/mail-templates.ts'
import type { Config } from '../../config.ts'
import { type Channels, type DeliveryDeps, deliverMessage } from '../outbox/deliver-message.ts'
import type { FirstAttempts } from '../outbox/first-attempts.ts'
import { createSilentGroups } from '../outbox/silent-groups.ts'
import { type HookChannelDeps, mailHookChannel, smsHookChannel } from './hook-channels.ts'

type AttemptDeps = Omit<HookChannelDeps, 'isRepeated'> &
  Omit<DeliveryDeps, 'channels' | 'silentGroups'> & { config: Pick<Config, 'mail' | 'siteUrl' | 'sms'> }

/** More than any queue's limit: an attempt of a request is the last, because its caller learns of the failure. */
const LAST = Number.MAX_SAFE_INTEGER

/** Makes the attempts of requests, where AUTH_HOOK_SEND_EMAIL_SYNC or AUTH_HOOK_SEND_SMS_SYNC demands them. */
export function createFirstAttempts(deps: AttemptDeps): FirstAttempts | undefined {
  const { mail, sms } = deps.config
  const channels = (['mail', 'sms'] as const).filter((channel) => (channel === 'mail' ? mail : sms).waitsForHook)
  if (channels.length === 0) return undefined
  const asked = { ...deps, isRepeated: false }
  const made: Channels = { mail: mailHookChannel(asked, openMailTemplates(deps)), sms: smsHookChannel(asked) }
  const delivery = { ...deps, channels: made, silentGroups: createSilentGroups() }
  return {
    channels,
    attempt: (messageId) => {
      const { signal } = new AbortController()
      return deliverMessage(delivery, { id: messageId, data: { messageId, notBefore: 0 }, retryCount: LAST, signal })
    },
  }
}
