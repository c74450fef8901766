import {
  anyUrl,
  baseUrl,
  boolean,
  duration,
  headerName,
  integer,
  list,
  parsed,
  port,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { parseAllowList } from '../core/redirects/allow-list-patterns.ts'
import type { limitVariables } from './limits.ts'

export const serverVariables = {
  SITE_URL: anyUrl('Base URL of the site; `redirect_to` may be any URI on its host.', { required: true }),
  URI_ALLOW_LIST: parsed(
    'list',
    'Further permitted `redirect_to` URIs, with the globs `*`, `**`, `?`, `[a-z]` and `{a,b}`; loopback addresses match with any port.',
    { default: '' },
    parseAllowList,
  ),
  API_EXTERNAL_URL: baseUrl(
    'Public URL of this service; mail links start with it. Requests are answered below its path and below `/`.',
    { required: true },
  ),
  API_HOST: text('Address to listen on.', { default: '0.0.0.0' }),
  PORT: port('Port to listen on.', { default: '8081', aliases: ['API_PORT'] }),
  API_MAX_REQUEST_DURATION: duration(
    'Time limit of a request; beyond it the answer is 504 and the transaction is rolled back.',
    {
      default: '10s',
      positive: true,
      max: '1h',
    },
  ),
  REQUEST_ID_HEADER: headerName('Header to take the request id from; unset: a new id per request.'),
  CORS_ALLOWED_HEADERS: list('Request headers browsers may send beside the built-in ones.', { default: '' }),
  WEB_CONCURRENCY: integer('Processes on this machine.', { default: '1', min: 1, max: 256 }),
  WORKERS_ENABLED: boolean('Deliver mail from this process; disable where separate `worker` processes do.', {
    default: 'true',
  }),
} satisfies Variables

type Server = typeof serverVariables & Pick<typeof limitVariables, 'SECURITY_SB_FORWARDED_FOR_ENABLED'>

export const serverSettings = (values: Values<Server> & { MAILER_EXTERNAL_HOSTS: readonly string[] }) => ({
  externalUrl: values.API_EXTERNAL_URL,
  externalHosts: values.MAILER_EXTERNAL_HOSTS,
  host: values.API_HOST,
  port: values.PORT,
  maxRequestSeconds: values.API_MAX_REQUEST_DURATION,
  requestIdHeader: values.REQUEST_ID_HEADER,
  corsAllowedHeaders: values.CORS_ALLOWED_HEADERS,
  processes: values.WEB_CONCURRENCY,
  workersEnabled: values.WORKERS_ENABLED,
  trustSbForwardedFor: values.SECURITY_SB_FORWARDED_FOR_ENABLED,
})

/** Reports whether a URL leads to this service: below a public address of it, or to its port on the same machine. */
export function isOwnAddress(
  {
    externalUrl,
    externalHosts,
    port: ownPort,
  }: Pick<ReturnType<typeof serverSettings>, 'externalUrl' | 'externalHosts' | 'port'>,
  address: string,
): boolean {
  const own = new URL(externalUrl)
  const { protocol, host, hostname, port, pathname } = new URL(address)
  if (protocol === 'http:' && LOOPBACK.test(hostname) && Number(port || 80) === ownPort) return true
  const isBelow = `${pathname}/`.startsWith(own.pathname.replace(/\/*$/, '/'))
  return isBelow && [own.host, ...externalHosts].includes(host)
}

const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/
