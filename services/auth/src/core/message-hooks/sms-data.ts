import { FACTOR_CODE_KIND, type SmsVariables } from '../outbox/outbox.ts'

/** `sms` of the send-sms hook. The members beside the first three are ours: with them a receiver may just forward. */
export const smsData = ({ kind, to, variables }: { kind: string; to: string; variables: SmsVariables }) => ({
  otp: variables.code,
  phone: to,
  ...(kind === FACTOR_CODE_KIND && { sms_type: 'mfa' }),
  channel: variables.channel,
  message: variables.text,
  kind,
})
