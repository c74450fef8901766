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

/** Time for which a gateway that did not answer in time is tried last: each message would wait for it first. */
const SILENT_FOR_MS = 60_000

/** Tries the gateways of SMS_PROVIDER in order; without any, messages wait for a worker that has one. */
export function createSmsSender(settings: Config['sms'], log: Logger, nowMs: () => number = () => performance.now()) {
  const gateways = settings.providers.map((name) => openGateway(name, settings))
  const silentUntil = new Map<SmsGateway, number>()
  const isSilent = (gateway: SmsGateway) => (silentUntil.get(gateway) ?? 0) > nowMs()
  const onEnd = (gateway: SmsGateway, failure?: Error) => {
    if (failure && hasTimedOut(failure)) silentUntil.set(gateway, nowMs() + SILENT_FOR_MS)
    else silentUntil.delete(gateway)
  }
  return {
    supports: (channel: SmsChannel) => gateways.some(({ channels }) => channels.includes(channel)),
    /** Throws PermanentFailure if the number or every gateway refuses it, another Error if a retry may succeed. */
    async send(message: SmsMessage) {
      const usable = gateways.filter(({ channels }) => channels.includes(message.channel))
      if (usable.length === 0) throw new TemporaryFailure(`no gateway for ${message.channel} is configured here`)
      const order = usable.toSorted((a, b) => Number(isSilent(a)) - Number(isSilent(b)))
      return tryInTurn(order, message, log.child({ messageId: message.id }), onEnd)
    },
  }
}

async function tryInTurn(
  gateways: SmsGateway[],
  message: SmsMessage,
  log: Logger,
  onEnd: (gateway: SmsGateway, failure?: Error) => void,
) {
  const failures: Error[] = []
  for (const gateway of gateways) {
    try {
      const { providerMessageId } = await gateway.send(message)
      onEnd(gateway)
      log.info({ gateway: gateway.name, providerMessageId }, 'SMS accepted by the gateway')
      return { gateway: gateway.name, providerMessageId }
    } catch (error) {
      const failure = error as Error
      onEnd(gateway, failure)
      logFailure(log, gateway.name, failure)
      if (failure instanceof PermanentFailure) throw failure
      failures.push(failure)
    }
  }
  const text = failures.map(({ message }) => message).join('; ')
  // Repeating refused credentials is pointless, and some gateways lock accounts for it.
  throw failures.every((failure) => failure instanceof GatewayRefusal)
    ? new PermanentFailure(text)
    : new TemporaryFailure(text, { upstream: upstreamOf(failures) })
}

const hasTimedOut = (failure: Error) => failure instanceof TemporaryFailure && failure.upstream === 'silent'

/** Errors of a gateway's own are its answers; a failed exchange is a TemporaryFailure. */
function upstreamOf(failures: Error[]): TemporaryFailure['upstream'] {
  if (failures.some(hasTimedOut)) return 'silent'
  return failures.some((failure) => !(failure instanceof TemporaryFailure)) ? 'answered' : undefined
}

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
