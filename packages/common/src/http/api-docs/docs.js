// The page at /docs: Swagger UI, dark where the system is. Its document names no server but the page's own.
const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: new URL(document.querySelector('#swagger-ui').dataset.document, location.href).href,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  docExpansion: 'list',
  deepLinking: true,
  validatorUrl: null,
})

const root = document.querySelector('#swagger-ui')

/** Attributes that Swagger UI leaves out, by the elements that lack them. */
const MISSING = [
  ['h3.opblock-tag, .models h4', { 'aria-level': '2' }],
  ['.opblock h4', { 'aria-level': '3' }],
  ['.opblock h5', { 'aria-level': '4' }],
  ['.info', { role: 'region', 'aria-label': 'About this API' }],
  ['textarea', { 'aria-label': 'Request body' }],
  ['.microlight', { tabindex: '0' }],
]

/** Repairs each new element. A link inside a button goes: the button opens the same, and sets the same address. */
function repair() {
  for (const link of root.querySelectorAll('.opblock-summary-control a[href]')) link.removeAttribute('href')
  for (const field of root.querySelectorAll('tr :is(input, select, textarea):not([aria-label])')) {
    const { paramName, propertyName = 'value' } = field.closest('tr').dataset
    field.setAttribute('aria-label', paramName ?? propertyName)
  }
  for (const [selector, attributes] of MISSING) {
    for (const element of root.querySelectorAll(selector)) {
      for (const [name, value] of Object.entries(attributes)) {
        if (!element.hasAttribute(name)) element.setAttribute(name, value)
      }
    }
  }
}
new MutationObserver(repair).observe(root, {
  childList: true,
  subtree: true,
  attributes: true,
  attributeFilter: ['href'],
})
