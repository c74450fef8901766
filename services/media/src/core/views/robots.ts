// Programs that fetch pages and files by themselves: crawlers, previews of chats, monitors, libraries. Their requests
// are no views. Browsers call themselves Mozilla, and so do many robots, which name themselves after it.

const BROWSER = /^(Mozilla|Opera)\//

const ROBOT = new RegExp(
  [
    // Parts of most names of robots; Cubot makes phones.
    ...[
      '(?<!cu)bot\\b',
      'bot_',
      'crawl',
      'spider',
      'slurp',
      'scrap',
      'archiver',
      'fetch',
      'monitor',
      'preview',
      'scan',
    ],
    ...['headless', 'phantomjs', 'lighthouse', 'pingdom', 'uptime', 'validator', 'checker'],
    // Those that have none.
    ...[
      'facebookexternalhit',
      'facebookcatalog',
      'whatsapp',
      'skypeuripreview',
      'embedly',
      'iframely',
      'mediapartners',
    ],
    ...[
      'google-',
      'googleother',
      'bingpreview',
      'yandex',
      'baiduspider',
      'duckduckgo-',
      'gptbot',
      'claude',
      'bytespider',
    ],
    ...['curl/', 'wget/', 'python', 'java/', 'okhttp', 'go-http-client', 'node-fetch', 'undici', 'axios', 'libwww'],
  ].join('|'),
  'i',
)

/** Reports whether the program that sent `User-Agent` is a browser that a person uses. */
export const isBrowser = (userAgent: string | undefined): boolean =>
  userAgent !== undefined && BROWSER.test(userAgent) && !ROBOT.test(userAgent)
