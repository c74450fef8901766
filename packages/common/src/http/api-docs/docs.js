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
