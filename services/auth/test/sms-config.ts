import { type Config, readConfig } from '../src/config.ts'

/** The SMS settings of a service that has these and what it cannot do without. */
export const smsConfig = (settings: Record<string, string>): Config['sms'] =>
  readConfig({
    AUTH_SITE_URL: 'https://site.example',
    AUTH_API_EXTERNAL_URL: 'https://auth.example/',
    AUTH_DATABASE_URL: 'postgres://localhost/auth',
    AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
    AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
    AUTH_SMS_TIMEOUT: '60',
    ...settings,
  }).config.sms

/** Settings of a service with a gateway and no worker: messages to it are queued and stay there. */
export const SMS_GATEWAY = {
  AUTH_EXTERNAL_PHONE_ENABLED: 'true',
  AUTH_SMS_PROVIDER: 'twilio',
  AUTH_SMS_TWILIO_ACCOUNT_SID: 'AC00000000000000000000000000000000',
  AUTH_SMS_TWILIO_AUTH_TOKEN: 'token',
  AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID: 'MG00000000000000000000000000000000',
  AUTH_WORKERS_ENABLED: 'false',
}
