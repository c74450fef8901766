import { pooledSettings } from '@services/common/testing/database/pooled'
import { SECRET } from './service.ts'

/** All that a process of the service is given: enough to start, and nothing of where the tests run. */
export const processEnvironment = (settings: Record<string, string | undefined> = {}): NodeJS.ProcessEnv =>
  pooledSettings('AUTH_', {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    AUTH_SITE_URL: 'https://site.example',
    AUTH_API_EXTERNAL_URL: 'https://auth.example',
    AUTH_API_HOST: '127.0.0.1',
    AUTH_PORT: '0',
    AUTH_DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none',
    AUTH_JWT_SECRET: SECRET,
    AUTH_SMTP_HOST: '127.0.0.1',
    AUTH_SMTP_PORT: '1',
    AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
    ...settings,
  })
