import { PermanentFailure } from '@services/common/queue/run-job'
import type { Logger } from '@services/common/telemetry/logger'
import type { Config } from '../../config.ts'
import { TemporaryFailure } from '../delivery-failures.ts'
import { GatewayRefusal, type SmsChannel, type SmsGateway, type SmsMessage } from './gateway.ts'
import { createHttpGateway } from './http-gateway.ts'
import { createMessageBirdGateway } from './messagebird.ts'
import { createTextLocalGateway } from './textlocal.ts'
import { createTwilioGateway } from './twilio.ts'
import { createVonageGateway } from './vonage.ts'

export type SmsSender = ReturnType<typeof createSmsSender>

/** Tries the gateways of SMS_PROVIDER in order; without any, messages wait for a worker that has one. */
export function createSmsSender(settings: Config['sms'], log: Logger) {
  const gateways = settings.providers.map((name) => openGateway(name, settings))
  return {
    supports: (channel: SmsChannel) => gateways.some(({ channels }) => channels.includes(channel)),
    /** Throws PermanentFailure if the number or every gateway refuses it, another Error if a retry may succeed. */
    async send(message: SmsMessage) {
      const usable = gateways.filter(({ channels }) => channels.includes(message.channel))
      if (usable.length === 0) throw new TemporaryFailure(`no gateway for ${message.channel} is configured here`)
      return tryInTurn(usable, message, log.child({ messageId: message.id }))
    },
  }
}

async function tryInTurn(gateways: SmsGateway[], message: SmsMessage, log: Logger) {
  const failures: Error[] = []
  for (const gateway of gateways) {
    try {
      const { providerMessageId } = await gateway.send(message)
      log.info({ gateway: gateway.name, providerMessageId }, 'SMS accepted by the gateway')
      return { gateway: gateway.name, providerMessageId }
    } catch (error) {
      const failure = error as Error
      logFailure(log, gateway.name, failure)
      if (failure instanceof PermanentFailure) throw failure
      failures.push(failure)
    }
  }
  const text = failures.map(({ message }) => message).join('; ')
  // Repeating refused credentials is pointless, and some gateways lock accounts for it.
  throw failures.every((failure) => failure instanceof GatewayRefusal)
    ? new PermanentFailure(text)
    : new TemporaryFailure(text, { timedOut: failures.some(hasTimedOut) })
}

const hasTimedOut = (failure: Error) => failure instanceof TemporaryFailure && failure.timedOut

/** A refusal by the gateway needs the operator; a bad number or a temporary failure does not. */
function logFailure(log: Logger, gateway: string, failure: Error): void {
  const facts = { gateway, reason: failure.message }
  if (failure instanceof GatewayRefusal) log.error(facts, 'SMS gateway refused the message')
  else log.warn(facts, failure instanceof PermanentFailure ? 'SMS gateway refused the number' : 'SMS gateway failed')
}

function openGateway(name: Config['sms']['providers'][number], settings: Config['sms']): SmsGateway {
  const { timeoutSeconds } = settings
  switch (name) {
    case 'twilio':
      return createTwilioGateway(settings.twilio, timeoutSeconds)
    case 'messagebird':
      return createMessageBirdGateway(settings.messagebird, timeoutSeconds)
    case 'vonage':
      return createVonageGateway(settings.vonage, timeoutSeconds)
    case 'textlocal':
      return createTextLocalGateway(settings.textlocal, timeoutSeconds)
    case 'http':
      return createHttpGateway(settings.http, timeoutSeconds)
  }
}
